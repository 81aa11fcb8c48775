use adjutant_macros::tool;

struct Db;

impl Db {
    /// Looks something up.
    #[tool]
    fn lookup(&self, key: String) -> String {
        key
    }
}

fn main() {}
