//! The files of the page: plain modules, without a build step.

use adjutant::runtime::http::PageFile;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(PageFile::new($name, include_str!(concat!("../page/", $name)))),*]
    };
}

/// The files of the page: `index.html` and its modules. Each one is served below `/app/`.
pub const PAGE: &[PageFile] = files![
    "index.html",
    "app.css",
    "preact.js",
    "fold.js",
    "text.js",
    "net.js",
    "list.js",
    "views.js",
    "forms.js",
    "app.js",
];
