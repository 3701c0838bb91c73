//! The flags of meta commands: they never panic, and a key in base 64 decodes to what encodes to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urgency_cache::protocol::{KEY_MAX, base64, meta};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (key, words) = input;
    if let Ok(command) = meta::Command::parse(key, words) {
        // No letter comes twice, and a key in base 64 can be decoded when the command is carried out.
        assert!(command.words().count() <= 127);
        assert!(!command.flags.base64 || base64::decode(key, &mut [0; KEY_MAX]).is_some());
    }
    let mut decoded = [0; 250];
    if let Some(bytes) = base64::decode(key, &mut decoded) {
        let mut encoded = Vec::new();
        base64::push_encoded(&mut encoded, bytes);
        assert!(encoded.len() <= key.len());
        assert_eq!(base64::decode(&encoded, &mut [0; 250]), Some(bytes));
    }
});
