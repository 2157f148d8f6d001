internal import NIOCore

/// Runs a connection's task on the connection's own event loop, where its bytes arrive and leave: a request is answered
/// without changing threads. What a handler does between two awaits holds up the other connections of that loop, so
/// nothing in it may block; stores answer from threads of their own.
@available(macOS 15, iOS 18, *)
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
