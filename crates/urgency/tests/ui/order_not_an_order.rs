urgency::levels! { App: Interactive > Batch }

fn at<L: urgency::level::Level>(_: L) {}

fn main() {
    let _ = urgency::Runtime::builder().levels::<Batch>();
    at("batch");
}
