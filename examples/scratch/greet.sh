#!/bin/sh
echo "Good mornin"
