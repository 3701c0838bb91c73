//! `Respond`: the future of a response, wherever it is made.
//!
//! - *Shed*: ready at once, with a 503.
//! - *Here*: the handler is polled by the caller.
//! - *There*: the handler's task sends the response. Dropping the future cancels the task; once it is ready,
//!   that right goes to the body, if that is still being made. If the sender is gone without a response, the
//!   handler panicked, or a shutdown cancelled it.
//!
//! The task's handle is never awaited: see the module's text on inversion.

use super::{
    body::{self, Cancelling, LevelBody},
    bounds::Ticket,
};
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use http_body::Body;
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use urgency::{LevelId, sync::oneshot};

type Answer<B, E> = Result<Response<LevelBody<B>>, E>;

pin_project! {
    /// The future of a response: see [`LevelLayer`](super::LevelLayer). Dropping it cancels the request.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use std::{convert::Infallible, future::{Ready, ready}, task::{Context, Poll}};
    /// use tower_layer::Layer;
    /// use tower_service::Service;
    /// use urgency_web::level::{LevelBody, LevelLayer, Respond};
    ///
    /// #[derive(Clone)]
    /// struct Hello;
    ///
    /// impl Service<Request<()>> for Hello {
    ///     type Response = Response<String>;
    ///     type Error = Infallible;
    ///     type Future = Ready<Result<Response<String>, Infallible>>;
    ///
    ///     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
    ///         Poll::Ready(Ok(()))
    ///     }
    ///
    ///     fn call(&mut self, _: Request<()>) -> Self::Future {
    ///         ready(Ok(Response::new("hello".to_owned())))
    ///     }
    /// }
    ///
    /// let mut service = LevelLayer::new().layer(Hello);
    /// let respond: Respond<Hello, Request<()>, String> = service.call(Request::new(()));
    /// let response: Response<LevelBody<String>> = urgency::block_on(respond)?;
    /// assert_eq!(response.status(), 200);
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    pub struct Respond<S, Q, B>
    where
        S: Service<Q>,
        B: Body,
    {
        #[pin]
        kind: Kind<S, Q, B>,
    }
}

pin_project! {
    #[project = Project]
    enum Kind<S, Q, B>
    where
        S: Service<Q>,
        B: Body,
    {
        Shed { retry_after: HeaderValue },
        Waiting { service: S, request: Option<Q>, ticket: Option<Ticket> },
        Here { #[pin] future: S::Future, ticket: Option<Ticket> },
        There { answer: oneshot::Receiver<Answer<B, S::Error>>, task: Option<Cancelling> },
    }
}

impl<S, Q, B> Respond<S, Q, B>
where
    S: Service<Q, Response = Response<B>>,
    B: Body,
{
    pub(super) fn shed(retry_after: HeaderValue) -> Self {
        let kind = Kind::Shed { retry_after };
        Respond { kind }
    }

    pub(super) fn here(service: S, request: Q, ticket: Ticket) -> Self {
        let (request, ticket) = (Some(request), Some(ticket));
        let kind = Kind::Waiting {
            service,
            request,
            ticket,
        };
        Respond { kind }
    }

    pub(super) fn there(level: LevelId, mut service: S, request: Q, ticket: Ticket) -> Self
    where
        S: Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        Q: Send + 'static,
        B: Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Send,
    {
        let (send, answer) = oneshot::channel();
        let work = async move {
            let response = async {
                poll_fn(|cx| service.poll_ready(cx)).await?;
                service.call(request).await
            };
            match response.await {
                Err(error) => drop(send.send(Err(error))),
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    let mut body = Some(body);
                    let split = poll_fn(|cx| {
                        let body = body.take().expect("ready at the first poll");
                        Poll::Ready(body::split(body, cx))
                    });
                    let (body, pump) = split.await;
                    let sent = send.send(Ok(Response::from_parts(head, body)));
                    if let (Ok(()), Some(pump)) = (sent, pump) {
                        pump.run().await;
                    }
                }
            }
        };
        let task = urgency::at(level).spawn(async move {
            // A block that is dropped before it ran drops what it captured in this order: the ticket last.
            work.await;
            drop(ticket);
        });
        let task = Some(Cancelling::new(task));
        let kind = Kind::There { answer, task };
        Respond { kind }
    }
}

fn empty<B: Body>(status: StatusCode) -> Response<LevelBody<B>> {
    let mut response = Response::new(LevelBody::default());
    *response.status_mut() = status;
    response
}

impl<S, Q, B> Future for Respond<S, Q, B>
where
    S: Service<Q, Response = Response<B>>,
    B: Body,
{
    type Output = Answer<B, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut kind = self.project().kind;
        loop {
            let next = match kind.as_mut().project() {
                Project::Shed { retry_after } => {
                    let mut response = empty(StatusCode::SERVICE_UNAVAILABLE);
                    let headers = response.headers_mut();
                    headers.insert(RETRY_AFTER, retry_after.clone());
                    return Poll::Ready(Ok(response));
                }
                Project::Waiting {
                    service,
                    request,
                    ticket,
                } => {
                    ready!(service.poll_ready(cx))?;
                    let request = request.take().expect("called once, when ready");
                    let (future, ticket) = (service.call(request), ticket.take());
                    Kind::Here { future, ticket }
                }
                Project::Here { future, ticket } => {
                    let answer = ready!(future.poll(cx));
                    let ticket = ticket.take();
                    let with_body = |body| LevelBody::direct(body, ticket);
                    return Poll::Ready(answer.map(|response| response.map(with_body)));
                }
                Project::There { answer, task } => {
                    let answer = ready!(Pin::new(answer).poll(cx));
                    let task = task
                        .take()
                        .expect("a future is not polled after it was ready");
                    return Poll::Ready(match answer {
                        Ok(Ok(mut response)) => {
                            response.body_mut().made_by(task);
                            Ok(response)
                        }
                        Ok(Err(error)) => Err(error),
                        Err(_) => Ok(empty(StatusCode::INTERNAL_SERVER_ERROR)),
                    });
                }
            };
            kind.set(next);
        }
    }
}

impl<S: Service<Q>, Q, B: Body> fmt::Debug for Respond<S, Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Shed { .. } => "Respond(shed)",
            Kind::Waiting { .. } | Kind::Here { .. } => "Respond(here)",
            Kind::There { .. } => "Respond(there)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds::{Bounds, InFlight};
    use super::*;
    use bytes::Bytes;
    use http_body_util::Empty;
    use std::{
        convert::Infallible,
        future::Pending,
        sync::{Arc, Mutex},
    };
    use urgency::Runtime;

    /// Says when it is dropped how many requests are in flight.
    struct Probe(InFlight, LevelId, Arc<Mutex<Vec<usize>>>);

    impl Drop for Probe {
        fn drop(&mut self) {
            let in_flight = self.0.at(self.1);
            self.2.lock().unwrap().push(in_flight);
        }
    }

    /// A service that is never ready.
    struct Never;

    impl Service<Probe> for Never {
        type Response = Response<Empty<Bytes>>;
        type Error = Infallible;
        type Future = Pending<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _: Probe) -> Self::Future {
            unreachable!("it is not ready")
        }
    }

    #[test]
    fn a_request_that_is_cancelled_before_its_handler_ran_is_in_flight_until_it_is_dropped() {
        let (bounds, seen) = (Bounds::default(), Arc::default());
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let level = LevelId::new(0).unwrap();
        runtime.run(|| {
            // The only worker is here.
            let request = Probe(bounds.in_flight(), level, Arc::clone(&seen));
            let ticket = bounds.enter(level).unwrap();
            drop(Respond::there(level, Never, request, ticket));
        });
        drop(runtime);
        assert_eq!(*seen.lock().unwrap(), [1]);
        assert_eq!(bounds.in_flight().at(level), 0);
    }
}
