//! What `levels!` accepts.

#![deny(missing_docs, dead_code, unused_imports)]

use urgency::level::Levels;

mod single {
    urgency::levels! { pub(crate) One: Only }
}

mod attributes {
    urgency::levels! {
        /// An order with documentation and attributes everywhere.
        #[derive(PartialEq)]
        pub(super) Documented:
            /// First.
            #[derive(PartialOrd)]
            First > /** Second. */ Second;
            First > #[allow(non_camel_case_types)] r#type;
            Unrelated;
    }
}

mod order_of_declaration {
    urgency::levels! { pub Late: C > D; A > B; B > C }
}

/// As many levels as there can be.
mod sixty_four {
    urgency::levels! {
        pub Many: L0 > L1 > L2 > L3 > L4 > L5 > L6 > L7 > L8 > L9 > L10 > L11 > L12 > L13 > L14 > L15
            > L16 > L17 > L18 > L19 > L20 > L21 > L22 > L23 > L24 > L25 > L26 > L27 > L28 > L29 > L30
            > L31 > L32 > L33 > L34 > L35 > L36 > L37 > L38 > L39 > L40 > L41 > L42 > L43 > L44 > L45
            > L46 > L47 > L48 > L49 > L50 > L51 > L52 > L53 > L54 > L55 > L56 > L57 > L58 > L59 > L60
            > L61 > L62 > L63
    }
}

fn main() {
    assert_eq!(single::One::NAMES, ["Only"]);
    assert_eq!(single::Only::RANK, 0);
    assert_eq!(
        attributes::Documented::NAMES,
        ["First", "Second", "type", "Unrelated"]
    );
    assert!(attributes::First <= attributes::First);
    assert_eq!(attributes::r#type::NAME, "type");
    assert_eq!(order_of_declaration::Late::NAMES, ["A", "B", "C", "D"]);
    assert_eq!(sixty_four::Many::ABOVE[63], u64::MAX >> 1);
    assert_eq!(sixty_four::L63.id().rank(), 63);

    // In a function as well, which brings the trait `Level` into scope.
    urgency::levels! { Local: Up > Down }
    assert_eq!((Local::NAME, Up::RANK, Down::RANK), ("Local", 0, 1));
}
