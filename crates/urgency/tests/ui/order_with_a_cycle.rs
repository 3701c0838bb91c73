urgency::levels! {
    App: Interactive > Query > Batch;
         Batch > Audit > Query
}

mod itself {
    urgency::levels! { App: Query > Query }
}

fn main() {}
