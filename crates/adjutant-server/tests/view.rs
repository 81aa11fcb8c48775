//! Tests of the page's routes: over a stored journal and over an agent that runs, and who may not ask.

#[path = "view/looks.rs"]
mod looks;
#[path = "view/refused.rs"]
mod refused;
#[path = "view/stage.rs"]
mod stage;
#[path = "view/weight.rs"]
mod weight;
