//! A model that answers from a cassette, and knows of each reply which model gave it.

use std::{fs::File, io::BufReader, path::Path};

use adjutant::{
    Model,
    llm::{Cassette, Chunk, ChunkStream, ModelId, ModelInfo, Replay, Request},
    providers::catalogue::Catalogue,
};

use crate::{exit::Exit, problem::Problem};

/// A cassette that is played.
#[derive(Debug)]
pub(crate) struct Played {
    replay: Replay,
    /// The models beside that of the header: those that were asked when it failed.
    others: Vec<ModelInfo>,
}

impl Played {
    /// Reads the cassette of a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let problem = |what: &str, error: &dyn std::error::Error| {
            Problem::new(
                Exit::Usage,
                format!("cannot {what} the cassette: {}", path.display()),
            )
            .cause(error)
        };
        let file = File::open(path).map_err(|error| problem("open", &error))?;
        let cassette =
            Cassette::read(BufReader::new(file)).map_err(|error| problem("play", &error))?;
        Ok(Self {
            others: others(&cassette),
            replay: Replay::new(cassette),
        })
    }

    /// Returns the number of exchanges that were not played.
    pub(crate) fn left(&self) -> usize {
        self.replay.left()
    }
}

/// Returns the infos of the models that answered in the place of the first one.
fn others(cassette: &Cassette) -> Vec<ModelInfo> {
    let catalogue = Catalogue::builtin();
    let mut others: Vec<ModelInfo> = Vec::new();
    for chunk in cassette
        .exchanges
        .iter()
        .flat_map(|exchange| &exchange.chunks)
    {
        let Chunk::Start { model, .. } = chunk else {
            continue;
        };
        if *model != cassette.info.id && others.iter().all(|info| info.id != *model) {
            let known = catalogue.find(model.as_str()).cloned();
            others.push(known.unwrap_or_else(|| ModelInfo::new(model.clone())));
        }
    }
    others
}

impl Model for Played {
    fn info(&self) -> &ModelInfo {
        self.replay.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.others
            .iter()
            .find(|info| info.id == *model)
            .unwrap_or_else(|| self.info())
    }

    fn stream(&self, request: Request) -> ChunkStream {
        self.replay.stream(request)
    }
}
