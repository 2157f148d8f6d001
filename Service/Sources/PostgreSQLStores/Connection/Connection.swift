internal import AuthService
internal import Bytes
internal import CPostgreSQL
internal import Foundation

/// One connection to PostgreSQL, on its own thread. Its methods block that thread, and each wait has a deadline.
///
/// After an error that leaves its state unknown, the connection is closed, and opened again for the next request.
actor Connection {
    nonisolated let thread: ConnectionThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// The name of a prepared statement on the server, and its columns once they are known.
    struct Prepared {
        let name: String
        var columns: [String: Int32]?
    }

    /// A cancellation that is being sent.
    struct Cancellation {
        let isSent: Locked<Bool>
        /// The deadline for the server's reaction.
        let end: ContinuousClock.Instant
    }

    private let address: ServerAddress
    let canceller: DispatchQueue
    private let settings: [Statement]
    /// The newest server timeline that this process has seen; nil: the timeline is not checked.
    private let timeline: TimelineGuard?
    /// The server's position on the timelines; nil: the server does not report it, the timeline is not checked, or the connection
    /// is closed.
    private(set) var place: PrimaryPlace?
    /// The node that makes this connection's changes.
    let node: NodeID
    /// The index of the server that answered last. The next attempt begins with it.
    private var preferred = 0
    var handle: OpaquePointer?
    var statements: [String: Prepared] = [:]
    var lastStatement = 0
    var deadline = ContinuousClock.now
    var request: Request?
    var cancellation: Cancellation?
    /// Why the last statement failed.
    var failure: ServerFailure?
    private(set) var server: ServerAddress.Server?
    var transaction: OpenTransaction?
    /// Records the server's warning that it committed but no longer waits for a replica.
    let replication = ReplicationWarning()
    /// Whether the last transaction failed after its commit was sent, so that the change may have happened.
    var isOutcomeUnknown = false

    /// - Parameters:
    ///   - address: the servers.
    ///   - settings: statements that each new connection runs first.
    ///   - timeline: the newest server timeline that the process has seen.
    ///   - node: the node that makes this connection's changes.
    ///   - canceller: sends cancellations, one at a time. libpq's call blocks for as long as the server hangs.
    init(
        address: ServerAddress, settings: [Statement], timeline: TimelineGuard? = nil, node: NodeID = NodeID(),
        canceller: DispatchQueue = DispatchQueue(label: "postgresql-cancel"), name: String
    ) {
        self.address = address
        self.settings = settings
        self.timeline = timeline
        self.node = node
        self.canceller = canceller
        thread = ConnectionThread(name: name)
    }

    var isOpen: Bool { handle != nil }

    /// Whether the server has a transaction open, even a failed one.
    var isInTransaction: Bool { handle.map { PQtransactionStatus($0) != PQTRANS_IDLE } ?? false }

    /// The server process of this connection.
    var process: Int32? { handle.map { PQbackendPID($0) } }

    // MARK: Requests

    /// Whether the caller still waits for the answer.
    var isWanted: Bool { request?.isOver != true && ContinuousClock.now < deadline }

    /// Sets the request and the deadline of the next statements.
    func begin(_ request: Request?, deadline: ContinuousClock.Instant) {
        self.request = request
        self.deadline = deadline
        failure = nil
    }

    /// Runs a body with its own deadline and without the current request.
    func withOwnTime<Value, Failure: Error>(
        _ time: Duration, _ body: (isolated Connection) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let wanted = (deadline, request)
        (deadline, request) = (ContinuousClock.now + time, nil)
        defer { (deadline, request) = wanted }
        return try body(self)
    }

    /// Closes the connection unless it is ready for another request.
    func end() {
        request = nil
        guard let handle else { return }
        let isReady = PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE
        if !isReady || failure?.endsConnection == true { close() }
    }

    // MARK: Opening and closing

    /// Opens the connection if it is closed or the server closed it. Opens it again if the process has seen a newer timeline.
    func open() throws(StoreError) {
        if handle != nil, !isAlive || !isOfTheNewest { close() }
        guard handle == nil else { return }
        var failures: [String] = []
        for attempt in address.servers.indices {
            let index = (preferred + attempt) % address.servers.count
            let server = address.servers[index]
            do throws(StoreError) {
                // `DeadlineWatch` answers the caller at the caller's deadline, but the attempt continues until its own timeout. So
                // the next server is tried if this one does not answer.
                try withOwnTime(address.connectTimeout) { (connection) throws(StoreError) in
                    try connection.connect(to: server)
                }
                (preferred, self.server) = (index, server)
                return
            } catch {
                close()
                failures.append("\(server.name): \(error.reason)")
            }
        }
        let reason = failures.joined(separator: "; ")
        failure = .lost(reason)
        throw StoreError(.unavailable, "PostgreSQL cannot be reached: \(reason)")
    }

    func close() {
        if let handle { PQfinish(handle) }
        (handle, cancellation, place) = (nil, nil, nil)
        statements = [:]
    }

    /// Whether an idle connection has neither ended nor received data.
    ///
    /// A server sends data to an idle connection only as the reason why it ends the connection. Reading that data does not fail
    /// yet, and the end of the stream may come later. So any data means that the connection has ended. At worst, a connection is
    /// opened again needlessly.
    private var isAlive: Bool {
        guard let handle, PQstatus(handle) == CONNECTION_OK else { return false }
        var poller = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        return poll(&poller, 1, 0) == 0
    }

    private func connect(to server: ServerAddress.Server) throws(StoreError) {
        let names = server.parameters.keys.sorted()
        let opened = Self.withCStrings(names) { keywords in
            Self.withCStrings(names.map { server.parameters[$0] ?? "" }) { PQconnectStartParams(keywords, $0, 0) }
        }
        guard let handle = opened else { throw StoreError(.unavailable, "out of memory") }
        self.handle = handle
        // This also keeps libpq from printing notices to standard error.
        replication.listen(on: handle)
        var state = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
        while state != PGRES_POLLING_OK {
            switch state {
            case PGRES_POLLING_READING: try wait(Int16(POLLIN))
            case PGRES_POLLING_WRITING: try wait(Int16(POLLOUT))
            default: throw StoreError(.unavailable, Self.message(of: handle, hiding: server.parameters["password"]))
            }
            state = PQconnectPoll(handle)
        }
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
            throw StoreError(.unavailable, "libpq has no pipeline mode")
        }
        _ = try run(settings)
        try joinLineage()
    }

    /// Throws if the server is of another database system than the process has seen, or on an older timeline. A server that does
    /// not report its timeline must be the only configured one.
    private func joinLineage() throws(StoreError) {
        guard let timeline else { return }
        let answer: StatementResult?
        do throws(StoreError) { answer = try run([TimelineGuard.question]).last } catch {
            // The user lacks a privilege (42501), or the function is missing (42883) or unsupported (0A000). Such a server is not
            // plain PostgreSQL.
            let isUnable = ["42501", "42883", "0A000"].contains(failure?.state)
            guard isUnable, address.servers.count == 1, handle != nil else { throw error }
            return
        }
        guard let row = answer?.first else {
            throw StoreError(.unreadable, "PostgreSQL does not say which server it is")
        }
        let place = PrimaryPlace(system: try row.text("system"), timeline: try row.integer("timeline"))
        try timeline.admit(place)
        self.place = place
    }

    /// Whether this connection's server is on the newest timeline that the process has seen. Also true if the server's
    /// position is not known.
    var isOfTheNewest: Bool {
        guard let timeline, let place else { return true }
        return timeline.isNewest(place)
    }

    /// Throws if the server stopped waiting for a replica during this call: the wait was cancelled, or took longer than
    /// `statement_timeout`. The server reports such a commit as a success.
    func checkReplication() throws(StoreError) {
        guard replication.isPresent else { return }
        throw StoreError(.tooSlow, "PostgreSQL committed, but no replica confirmed it in time")
    }

    /// libpq's last error on one line.
    static func message(of handle: OpaquePointer, hiding password: String?) -> String {
        var text = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        text = text.split { $0.isNewline || $0 == "\t" }.joined(separator: " ")
        // libpq does not print passwords, but a server's message may repeat one. Replace it.
        if let password, !password.isEmpty { text = text.replacingOccurrences(of: password, with: "…") }
        return text.isEmpty ? "the connection failed" : text
    }

    /// Closes the connection, because its state is unknown.
    func lost(_ message: String) -> StoreError {
        let failure = ServerFailure.lost(message)
        self.failure = failure
        close()
        return failure.storeError
    }

    /// Calls `body` with an array of C strings that ends with a null pointer.
    private static func withCStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var bytes: [CChar] = []
        let places = strings.map { string in
            defer { bytes += string.utf8CString }
            return bytes.count
        }
        return bytes.withUnsafeBufferPointer { buffer in
            let pointers: [UnsafePointer<CChar>?] = places.map { buffer.baseAddress?.advanced(by: $0) } + [nil]
            return pointers.withUnsafeBufferPointer { pointers in
                guard let base = pointers.baseAddress else { return withUnsafePointer(to: nil) { body($0) } }
                return body(base)
            }
        }
    }
}
