//! The slots that keep the encoded bytes of a transcript. Only the wire that made a slot knows its content.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The largest number of encodings that one transcript keeps: two models in turn on two wires.
const MAX_SLOTS: usize = 4;

/// The encodings of one transcript: at most four, keyed by wire, dialect and model.
///
/// All clones of a transcript share them, so the user of a slot must check that its value is a prefix of the current
/// transcript: compare the last encoded entry by pointer.
#[derive(Default)]
pub struct Encodings {
    slots: Mutex<Vec<EncodingSlot>>,
}

struct EncodingSlot {
    key: Arc<str>,
    value: Arc<dyn Any + Send + Sync>,
}

impl Encodings {
    /// Returns the value stored under `key`, created by `T::default()` if it does not exist; evicts the least
    /// recently used value if the slots are full.
    pub fn slot<T: Any + Send + Sync + Default>(&self, key: &str) -> Arc<T> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = slots.iter().position(|slot| &*slot.key == key) {
            let found = Arc::clone(&slots[at].value).downcast::<T>();
            if let Ok(value) = found {
                slots[at..].rotate_left(1);
                return value;
            }
            slots.remove(at);
        }
        if slots.len() == MAX_SLOTS {
            slots.remove(0);
        }
        let value = Arc::new(T::default());
        slots.push(EncodingSlot {
            key: key.into(),
            value: Arc::clone(&value) as Arc<dyn Any + Send + Sync>,
        });
        value
    }
}

impl fmt::Debug for Encodings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list()
            .entries(slots.iter().map(|slot| &slot.key))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_keeps_the_most_recently_used_when_full() {
        let encodings = Encodings::default();
        let first = encodings.slot::<u8>("a");
        for key in ["b", "c", "d"] {
            encodings.slot::<u8>(key);
        }
        assert!(Arc::ptr_eq(&first, &encodings.slot::<u8>("a")));
        encodings.slot::<u8>("e");
        assert_eq!(format!("{encodings:?}"), r#"["c", "d", "a", "e"]"#);
    }
}
