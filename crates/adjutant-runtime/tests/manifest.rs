//! Tests of the manifest.

#[path = "manifest/documented.rs"]
mod documented;
#[path = "manifest/extends.rs"]
mod extends;
#[path = "manifest/folder.rs"]
mod folder;
#[path = "manifest/hostile.rs"]
mod hostile;
#[path = "manifest/include.rs"]
mod include;
#[path = "manifest/read.rs"]
mod read;
#[path = "manifest/resolve.rs"]
mod resolve;
#[path = "manifest/schema.rs"]
mod schema;
#[path = "manifest/wrong.rs"]
mod wrong;
