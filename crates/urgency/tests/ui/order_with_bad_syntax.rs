mod empty {
    urgency::levels! {}
}
mod no_levels {
    urgency::levels! { pub App: }
}
mod no_name {
    urgency::levels! { Interactive > Batch }
}
mod wrong_way {
    urgency::levels! { App: Batch < Interactive }
}
mod wrong_separator {
    urgency::levels! { App: Interactive > Query, Interactive > Audit }
}
mod ends_early {
    urgency::levels! { App: Interactive > }
}
mod no_separator {
    urgency::levels! { App: Interactive > Query Interactive > Audit }
}
mod literal {
    urgency::levels! { App: "interactive" > Batch }
}
mod cfg {
    urgency::levels! { App: Interactive > #[cfg(unix)] Batch }
}
mod inner_attribute {
    urgency::levels! {
        //! The levels.
        App: Interactive > Batch
    }
}

fn main() {}
