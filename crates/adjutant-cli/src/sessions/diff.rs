//! The differences between two sessions.

use adjutant::agent::sessions::Diff;

use super::id;
use crate::{
    args, exit::Exit, named, plain, problem::Problem, screen::write, store::Store, trouble,
};

/// Prints where two sessions diverge, and their differences.
pub(crate) async fn diff(args: &args::Diff) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    for name in [&args.one, &args.other] {
        named::find(&sessions, name).await?;
    }
    let diff = sessions
        .diff(&id(&args.one), &id(&args.other))
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    write(&text(&diff, [&args.one, &args.other]))?;
    Ok(Exit::Finished)
}

fn text(diff: &Diff, names: [&str; 2]) -> String {
    if diff.beyond == [0, 0] {
        return format!("both hold the same {} records\n", diff.shared);
    }
    let mut text = format!("the first {} records are the same\n", diff.shared);
    for (name, beyond) in names.iter().zip(diff.beyond) {
        text += &format!("{} has {beyond} more\n", plain::line(name));
    }
    let mut sides = |at: &str, sides: &[Option<String>; 2]| {
        text += &format!("@ {at}\n");
        for (mark, side) in ["-", "+"].iter().zip(sides) {
            if let Some(side) = side {
                text += &format!("{mark} {}\n", plain::line(side));
            }
        }
    };
    for field in &diff.fields {
        sides(&plain::line(&field.at), &field.sides);
    }
    for line in &diff.lines {
        sides(&line.at.to_string(), &line.sides);
    }
    text
}
