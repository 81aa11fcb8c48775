//! How well facts are found: a small labelled set, by words, by vectors, and by both.

use std::sync::Arc;

use adjutant_agent::memory::Metadata;
use adjutant_context::Memories;
use adjutant_llm::{Embedder, EmbedderInfo, Embeddings, Error, HashEmbedder, Purpose};
use async_trait::async_trait;

use super::{double::Double, of};

/// What is known.
const FACTS: [&str; 30] = [
    "The user is called Ada Winter.",
    "The user lives in Lisbon, near the river.",
    "The user was born in Graz in 1987.",
    "The user works as a structural engineer for bridges.",
    "The user's employer is a company named Arcada.",
    "The user has a dog named Rex, who is eleven years old.",
    "The user's sister Marta teaches chemistry in Vienna.",
    "The user is allergic to peanuts.",
    "The user does not eat meat, but eats fish.",
    "The user drinks green tea in the morning and no coffee.",
    "The user runs ten kilometres every Sunday.",
    "The user broke the left wrist in a fall from a bicycle.",
    "The user's birthday is on the ninth of March.",
    "The user is married to Jonas, who is a nurse.",
    "The user has two children, Lena and Paul.",
    "The user's daughter Lena plays the cello.",
    "The user's son Paul is afraid of dogs.",
    "The user speaks German, Portuguese and some Japanese.",
    "The user plans to travel to Kyoto in the autumn.",
    "The user prefers trains to planes.",
    "The user writes software in Rust and Python.",
    "The user's laptop runs Linux.",
    "The user wants answers in short sentences without emojis.",
    "The user prefers dark themes in every editor.",
    "The user's current project is a footbridge over the Mondego.",
    "The project's deadline is the end of November.",
    "The user reports to a manager named Teresa.",
    "The user saves money for a small sailing boat.",
    "The user reads science fiction, most of all Lem.",
    "The user takes a pill against high blood pressure at night.",
];

/// What is asked, and the facts that answer it.
const QUERIES: [(&str, &[usize]); 20] = [
    ("What is my name?", &[0]),
    ("In which city do I live?", &[1]),
    ("Where was I born?", &[2]),
    ("What do I work as?", &[3]),
    ("What company is my employer?", &[4]),
    ("How old is my dog Rex?", &[5]),
    ("What does my sister teach?", &[6]),
    ("Cook something for me: no peanuts, no meat.", &[7, 8]),
    ("Do I drink coffee or tea?", &[9]),
    ("How far do I run on Sundays?", &[10]),
    ("Which wrist did I break?", &[11]),
    ("When is my birthday?", &[12]),
    ("What do my children Lena and Paul do?", &[14, 15, 16]),
    ("Which languages do I speak?", &[17]),
    ("Book the travel to Kyoto, by train if possible.", &[18, 19]),
    ("Write the software for my Linux laptop.", &[20, 21]),
    ("Keep the answers short.", &[22]),
    (
        "When is the deadline of the project with the footbridge?",
        &[24, 25],
    ),
    ("Who is my manager?", &[26]),
    ("Which pill do I take for my blood pressure?", &[29]),
];

/// Vectors of three letters at a time: words that are alike are near, as they are for embedders that know the language.
#[derive(Debug)]
struct Letters(HashEmbedder);

#[async_trait]
impl Embedder for Letters {
    fn info(&self) -> &EmbedderInfo {
        self.0.info()
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error> {
        let split = |text: &Arc<str>| {
            let letters: Vec<char> = text
                .chars()
                .map(|it| if it.is_alphanumeric() { it } else { '_' })
                .collect();
            letters
                .windows(3)
                .map(|it| it.iter().collect::<String>().replace('_', "0"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.0
            .embed(
                &texts
                    .iter()
                    .map(|text| split(text).into())
                    .collect::<Vec<Arc<str>>>(),
                purpose,
            )
            .await
    }
}

/// How many of the expected facts are among the first five, over all queries.
async fn recall_at_5(memories: &Memories) -> f64 {
    let (mut sum, mut memories) = (0.0, memories.clone());
    memories.min_score = 0.0;
    for (query, expected) in QUERIES {
        let found = memories.search(query).await.expect("the store works");
        let hit = |at: &&usize| found.iter().any(|it| *it.fact.text == *FACTS[**at]);
        sum += expected.iter().filter(hit).count() as f64 / expected.len() as f64;
    }
    sum / QUERIES.len() as f64
}

async fn filled(memories: Memories) -> Memories {
    for fact in FACTS {
        memories
            .add(fact, Metadata::new())
            .await
            .expect("there is room");
    }
    memories
}

/// Recall by words alone, by vectors alone, and by both.
async fn measure(embedder: impl Fn() -> Arc<dyn Embedder>) -> [f64; 3] {
    let store = Arc::new(Double::default());
    let words = recall_at_5(&filled(of(&store, "words")).await).await;
    let both = recall_at_5(&filled(of(&store, "both").embedder(embedder())).await).await;
    let vectors = filled(of(&store, "vectors").embedder(embedder())).await;
    store.deafen();
    [words, recall_at_5(&vectors).await, both]
}

#[tokio::test]
async fn hybrid_search_is_about_as_good_as_the_better_half_when_the_set_is_labelled() {
    let hash: [f64; 3] = measure(|| Arc::new(HashEmbedder::new(512))).await;
    let letters: [f64; 3] = measure(|| Arc::new(Letters(HashEmbedder::new(2_048)))).await;
    for (name, [words, vectors, both]) in [("hashed words", hash), ("hashed letters", letters)] {
        println!("recall@5, {name}: words {words:.3}, vectors {vectors:.3}, both {both:.3}");
        assert!(
            both >= words.max(vectors) - 0.05,
            "{name}: {both} against {words} and {vectors}"
        );
        assert!(both >= 0.8, "{name}: {both}");
    }
}
