//! The code blocks of the README of `adjutant-macros`, compiled by the doc tests.
