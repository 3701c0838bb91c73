mod level {
    urgency::levels! { App: Interactive > Batch; Audit; Batch }
}

mod pair {
    urgency::levels! { App: Interactive > Query > Batch; Interactive > Query }
}

mod name {
    urgency::levels! { App: Interactive > App }
}

fn main() {}
