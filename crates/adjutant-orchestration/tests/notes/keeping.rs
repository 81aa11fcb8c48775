//! What is kept, on every key-value store.

use std::sync::Arc;

use adjutant_agent::kv::{Version, When};
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    ErrorKind,
    notes::{Author, Notes, Writing},
};

use super::{NOW_MS, ada, bob, kv_stores, on};

fn names(infos: &[adjutant_orchestration::notes::NoteInfo]) -> Vec<&str> {
    infos.iter().map(|info| &*info.name).collect()
}

#[tokio::test]
async fn note_is_read_by_others_when_it_was_written() {
    for place in kv_stores::all("note_is_read_by_others_when_it_was_written").await {
        let world = Arc::new(FixedWorld::at_ms(NOW_MS));
        let mine = Notes::new(Arc::clone(&place.kv)).world(world.clone());
        let theirs = Notes::new(Arc::clone(&place.other)).world(world.clone());
        assert_eq!(
            theirs.read("plan").await.expect("it is read"),
            None,
            "{place:?}"
        );
        let first = mine
            .write(Writing::replace("plan", "Tea, then work. ☕"), &ada())
            .await
            .expect("it is written");
        world.advance_ms(5_000);
        let second = theirs
            .write(Writing::replace("plan", "Work."), &bob())
            .await
            .expect("it is written");
        let note = mine
            .read("plan")
            .await
            .expect("it is read")
            .expect("there is one");
        assert_eq!((&*note.body, &note.info), ("Work.", &second), "{place:?}");
        assert_eq!((first.bytes, second.bytes), (19, 5), "{place:?}");
        assert!(second.version > first.version, "{place:?}");
        assert_eq!(
            (&note.info.created_by, note.info.created_ms),
            (&Author::from(&ada()), NOW_MS),
            "{place:?}"
        );
        assert_eq!(
            (&note.info.changed_by, note.info.changed_ms),
            (&Author::from(&bob()), NOW_MS + 5_000),
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn text_is_appended_on_a_line_of_its_own() {
    for place in kv_stores::all("text_is_appended_on_a_line_of_its_own").await {
        let notes = on(Arc::clone(&place.kv));
        for text in ["one", "two\n", "three"] {
            notes
                .write(Writing::append("log", text), &ada())
                .await
                .expect("it is written");
        }
        let note = notes
            .read("log")
            .await
            .expect("it is read")
            .expect("there is one");
        assert_eq!(&*note.body, "one\ntwo\nthree", "{place:?}");
    }
}

#[tokio::test]
async fn writing_does_nothing_again_when_its_key_is_known() {
    for place in kv_stores::all("writing_does_nothing_again_when_its_key_is_known").await {
        let notes = on(Arc::clone(&place.kv));
        let writing = Writing::append("log", "once").key("call-1");
        let first = notes
            .write(writing.clone(), &ada())
            .await
            .expect("it is written");
        let again = notes.write(writing, &ada()).await.expect("it is written");
        assert_eq!(first, again, "{place:?}");
        notes
            .write(Writing::append("log", "twice").key("call-2"), &ada())
            .await
            .expect("it is written");
        let absent = Writing::replace("other", "x")
            .when(When::Absent)
            .key("call-3");
        notes
            .write(absent.clone(), &ada())
            .await
            .expect("it is written");
        notes
            .write(absent, &ada())
            .await
            .expect("it was written before");
        let note = notes
            .read("log")
            .await
            .expect("it is read")
            .expect("there is one");
        assert_eq!(&*note.body, "once\ntwice", "{place:?}");
    }
}

#[tokio::test]
async fn writing_is_refused_when_the_note_is_not_as_it_must_be() {
    for place in kv_stores::all("writing_is_refused_when_the_note_is_not_as_it_must_be").await {
        let notes = on(Arc::clone(&place.kv));
        let kind = async |writing: Writing| {
            notes
                .write(writing, &ada())
                .await
                .map_err(|error| error.kind())
        };
        let absent = |body: &str| Writing::replace("plan", body).when(When::Absent);
        let is = |body: &str, version| Writing::replace("plan", body).when(When::Is(version));
        assert_eq!(
            kind(is("0", Version(1))).await,
            Err(ErrorKind::Missing),
            "{place:?}"
        );
        let first = kind(absent("1")).await.expect("there is none");
        assert_eq!(kind(absent("2")).await, Err(ErrorKind::Exists), "{place:?}");
        let second = kind(is("3", first.version))
            .await
            .expect("it is the version");
        assert_eq!(
            kind(is("4", first.version)).await,
            Err(ErrorKind::Conflict),
            "{place:?}"
        );
        let note = notes
            .read("plan")
            .await
            .expect("it is read")
            .expect("there is one");
        assert_eq!((&*note.body, note.info), ("3", second), "{place:?}");
    }
}

#[tokio::test]
async fn removed_note_is_gone_everywhere() {
    for place in kv_stores::all("removed_note_is_gone_everywhere").await {
        let notes = on(Arc::clone(&place.kv));
        assert!(
            !notes.remove("plan").await.expect("nothing fails"),
            "{place:?}"
        );
        notes
            .write(Writing::replace("plan", "tea"), &ada())
            .await
            .expect("it is written");
        assert!(
            notes.remove("plan").await.expect("it is removed"),
            "{place:?}"
        );
        assert_eq!(
            notes.read("plan").await.expect("it is read"),
            None,
            "{place:?}"
        );
        assert_eq!(notes.list(None, 9).await.expect("a list"), [], "{place:?}");
        assert_eq!(
            notes.search("tea", 9).await.expect("a search"),
            [],
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn list_comes_in_pages_in_the_order_of_names() {
    for place in kv_stores::all("list_comes_in_pages_in_the_order_of_names").await {
        let notes = on(Arc::clone(&place.kv));
        for name in ["b", "a-1", "B", "a", "c_2"] {
            notes
                .write(Writing::replace(name, "x"), &ada())
                .await
                .expect("it is written");
        }
        let first = notes.list(None, 2).await.expect("a page");
        assert_eq!(names(&first), ["B", "a"], "{place:?}");
        let rest = notes.list(Some("a"), usize::MAX).await.expect("a page");
        assert_eq!(names(&rest), ["a-1", "b", "c_2"], "{place:?}");
        assert_eq!(
            notes.list(Some("c_2"), 9).await.expect("a page"),
            [],
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn search_finds_by_body_and_name_and_not_by_common_words() {
    for place in kv_stores::all("search_finds_by_body_and_name_and_not_by_common_words").await {
        let notes = on(Arc::clone(&place.kv));
        let bodies = [
            ("build", "The build needs the nightly toolchain."),
            ("lunch-plans", "We eat at the harbour."),
            ("toolchain", "Toolchain, toolchain: pinned to 1.95."),
        ];
        for (name, body) in bodies {
            notes
                .write(Writing::replace(name, body), &ada())
                .await
                .expect("it is written");
        }
        let found = async |query: &str| {
            let found = notes.search(query, 9).await.expect("a search");
            found
                .into_iter()
                .map(|note| note.info.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            found("TOOLCHAIN").await,
            ["toolchain", "build"],
            "{place:?}"
        );
        assert_eq!(
            found("what are the plans?").await,
            ["lunch-plans"],
            "{place:?}"
        );
        assert_eq!(found("wine").await, [""; 0], "{place:?}");
        assert_eq!(found("\" OR 1=1 -- toolchain*").await.len(), 2, "{place:?}");
    }
}

#[tokio::test]
async fn search_is_refused_when_it_has_no_word() {
    for place in kv_stores::all("search_is_refused_when_it_has_no_word").await {
        let notes = on(Arc::clone(&place.kv));
        for query in ["", "  \n", "\0 -- !", "what is the"] {
            let error = notes
                .search(query, 9)
                .await
                .expect_err("nothing is looked for");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{place:?} {query:?}");
        }
    }
}
