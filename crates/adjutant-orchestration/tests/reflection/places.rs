//! Every kind of place for reflections, empty; what cannot be had here is said.

use std::{fmt, sync::Arc};

use adjutant_llm::FixedWorld;
use adjutant_orchestration::Reflections;
use tempfile::TempDir;

use super::{super::notes::kv_stores, NOW_MS};

/// A place, as two processes have it.
pub(super) struct Place {
    kind: &'static str,
    pub(super) mine: Reflections,
    pub(super) theirs: Reflections,
    pub(super) world: Arc<FixedWorld>,
    _folder: Option<TempDir>,
    _kv: Option<kv_stores::Place>,
}

/// A place of each kind, for the test of this name.
pub(super) async fn all(test: &str) -> Vec<Place> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/reflections");
    let of = |kind, mine: Reflections, theirs: Reflections| {
        let world = Arc::new(FixedWorld::at_ms(NOW_MS));
        let (mine, theirs) = (mine.world(world.clone()), theirs.world(world.clone()));
        Place {
            kind,
            mine,
            theirs,
            world,
            _folder: None,
            _kv: None,
        }
    };
    let mut places = vec![of(
        "directory",
        Reflections::in_dir(&path),
        Reflections::in_dir(&path),
    )];
    places[0]._folder = Some(folder);
    for kv in kv_stores::all(test).await {
        let on = |kv: &Arc<_>| Reflections::on_kv(Arc::clone(kv));
        let mut place = of(kv.kind, on(&kv.kv), on(&kv.other));
        place._kv = Some(kv);
        places.push(place);
    }
    places
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }
}
