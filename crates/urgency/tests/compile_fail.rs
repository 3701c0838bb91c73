//! What the types of levels refuse, with the message that a user sees, and what they accept.
//!
//! After a deliberate change of a message: `TRYBUILD=overwrite cargo test --test compile_fail`, and read the
//! difference. The messages are the current stable compiler's.

#[test]
fn priority_inversions_and_bad_orders_do_not_compile_and_say_why() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass_*.rs");
    cases.compile_fail("tests/ui/wait_*.rs");
    cases.compile_fail("tests/ui/order_*.rs");
    cases.compile_fail("tests/ui/spell_*.rs");
}
