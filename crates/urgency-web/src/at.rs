//! `At`: the proof of its level for a handler of axum.
//!
//! A router knows no levels: [`LevelLayer`](crate::level::LevelLayer) gives each request its level at run time, and a
//! handler is an untyped async function. [`At`] is where the two meet. As an extractor it checks, at run time and
//! before the handler runs, that the request has the level that the handler names; then [`At::run`] gives its body the
//! [`Cx`], and from there on a wait for less urgent work does not compile.
//!
//! | mistake | found |
//! | --- | --- |
//! | inside of `At::run`, a wait for less urgent work | by the compiler |
//! | the router gives a path another level than its handler names | at the first request: a 500 that names both |
//! | in a handler without `At`, a wait for less urgent work | at run time: [`JoinError`](urgency::JoinError) |
//!
//! ```
//! use axum::{Router, routing::get};
//! use urgency::level::Level as _;
//! use urgency_web::{At, level::LevelLayer};
//!
//! urgency::levels! { App: Interactive > Batch }
//!
//! async fn search(at: At<Interactive>) -> String {
//!     at.run(async |cx| {
//!         let hits = Interactive.spawn_fn(|_| 42); // on a stack of its own: it may fork
//!         let hits = hits.wait(cx).await.expect("nobody cancels it");
//!         // `Batch.spawn_fn(|_| ..).wait(cx)` does not compile: a search must not wait for a batch.
//!         format!("{hits} hits")
//!     })
//!     .await
//! }
//!
//! let levels = LevelLayer::new().otherwise(Interactive).path("/batch", Batch);
//! let router: Router = Router::new().route("/search", get(search)).layer(levels);
//! # drop(router);
//! ```

use axum_core::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use std::{fmt, marker::PhantomData};
use urgency::level::{Cx, Level, SendBody, WrongLevel};

/// An extractor: the request runs at level `L`. See the [module's text](self).
///
/// # Rejection
///
/// [`NotAt`], a 500, if it runs at another one.
pub struct At<L> {
    level: PhantomData<fn() -> L>,
}

impl<L: Level> At<L> {
    /// Runs the rest of the handler in typed code, in the same task.
    ///
    /// # Panics
    ///
    /// If it was carried to a task of another level; it belongs to the handler that extracted it.
    pub async fn run<F, T>(self, body: F) -> T
    where
        F: for<'cx> SendBody<'cx, L, Result = T>
            + for<'cx> AsyncFnOnce(Cx<'cx, L>) -> T
            + Send
            + 'static,
        T: Send + 'static,
    {
        match L::LEVEL.here(body).await {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }
}

impl<L: Level, S: Sync> FromRequestParts<S> for At<L> {
    type Rejection = NotAt;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, NotAt> {
        L::LEVEL.is_here().map_err(NotAt)?;
        let level = PhantomData;
        Ok(At { level })
    }
}

impl<L: Level> fmt::Debug for At<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At<{}>", L::NAME)
    }
}

/// A request runs at another level than its handler names: the router's layer and the handler disagree. The client gets
/// a 500 with the text of the [`WrongLevel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAt(
    /// Which level was wanted and which one was found.
    pub WrongLevel,
);

impl fmt::Display for NotAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotAt {}

impl IntoResponse for NotAt {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}
