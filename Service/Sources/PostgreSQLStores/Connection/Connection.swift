internal import AuthService
internal import Bytes
internal import CPostgreSQL
internal import Foundation

/// One connection to PostgreSQL, on a thread of its own. Its methods block that thread, and each wait has a deadline.
///
/// After an error that leaves its state unknown, the connection is closed and opens again for the next request.
actor Connection {
    nonisolated let thread: ConnectionThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// What a prepared statement is called on the server, and its columns once they are known.
    struct Prepared {
        let name: String
        var columns: [String: Int32]?
    }

    /// A cancellation on its way to the server.
    struct Cancellation {
        let isSent: Locked<Bool>
        /// Until when the server may answer.
        let end: ContinuousClock.Instant
    }

    private let address: ServerAddress
    let canceller: DispatchQueue
    private let settings: [Statement]
    /// What the process has seen; nil: this connection is not part of a node.
    private let lineage: Lineage?
    /// Where the server is in it; nil: it does not say.
    private(set) var place: PrimaryPlace?
    /// Whose changes this connection makes.
    let node: NodeName
    /// The server that answered last: where the next attempt begins.
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
    /// Whether the server stopped waiting for a replica.
    private let replication = ReplicationWarning()
    /// Whether the last transaction failed after its commit was sent, so that it may have happened.
    var isOutcomeUnknown = false

    /// - Parameters:
    ///   - address: the servers.
    ///   - settings: statements that each new connection runs first.
    ///   - lineage: what the process has seen.
    ///   - node: the node that makes this connection's changes.
    ///   - canceller: sends cancellations, one at a time. libpq's call blocks for as long as the server hangs.
    init(
        address: ServerAddress, settings: [Statement], lineage: Lineage? = nil, node: NodeName = NodeName(),
        canceller: DispatchQueue = DispatchQueue(label: "postgresql-cancel"), name: String
    ) {
        self.address = address
        self.settings = settings
        self.lineage = lineage
        self.node = node
        self.canceller = canceller
        thread = ConnectionThread(name: name)
    }

    var isOpen: Bool { handle != nil }

    /// Whether the server has a transaction open, also one that failed.
    var isInTransaction: Bool { handle.map { PQtransactionStatus($0) != PQTRANS_IDLE } ?? false }

    /// The process of the server that serves this connection.
    var process: Int32? { handle.map { PQbackendPID($0) } }

    // MARK: Requests

    /// Whether the caller still waits for the answer.
    var isWanted: Bool { request?.isOver != true && ContinuousClock.now < deadline }

    /// Sets whose request the next statements belong to, and until when they may take.
    func begin(_ request: Request?, deadline: ContinuousClock.Instant) {
        self.request = request
        self.deadline = deadline
        failure = nil
    }

    /// Runs a body as if no request was under way, with a deadline of its own.
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

    /// Opens the connection if it is closed, or if the server closed it since.
    func open() throws(StoreError) {
        if handle != nil, !isAlive || !isOfTheNewest { close() }
        guard handle == nil else { return }
        var failures: [String] = []
        for attempt in address.servers.indices {
            let index = (preferred + attempt) % address.servers.count
            let server = address.servers[index]
            do throws(StoreError) {
                // The caller gets its answer at its deadline. The attempt goes on, so that the next server has its turn.
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

    /// Whether an idle connection has neither ended nor received anything.
    ///
    /// A server says nothing to an idle connection, except why it ends. Reading that is no failure yet, and the end of the stream
    /// may come later. So whatever there is to read counts as the end: at worst, a connection opens again.
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
        // Without this, libpq prints notices to standard error too.
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

    /// Throws if the server is behind one that the process has seen. A server that does not say where it is must be the only one.
    private func joinLineage() throws(StoreError) {
        guard let lineage else { return }
        let answer: StatementResult?
        do throws(StoreError) { answer = try run([Lineage.question]).last } catch {
            // A right that is missing, a function that is not there or not supported: the server is of another kind.
            let isUnable = ["42501", "42883", "0A000"].contains(failure?.state)
            guard isUnable, address.servers.count == 1, handle != nil else { throw error }
            return
        }
        guard let row = answer?.first else {
            throw StoreError(.unreadable, "PostgreSQL does not say which server it is")
        }
        let place = PrimaryPlace(system: try row.text("system"), timeline: try row.integer("timeline"))
        try lineage.admit(place)
        self.place = place
    }

    /// Whether the process has seen no newer server.
    var isOfTheNewest: Bool {
        guard let lineage, let place else { return true }
        return lineage.isNewest(place)
    }

    /// Throws if the server stopped waiting for a replica since the last time: someone cancelled the commit, or it took longer
    /// than `statement_timeout`. The server calls that a success.
    func checkReplication() throws(StoreError) {
        guard replication.take() else { return }
        throw StoreError(.tooSlow, "PostgreSQL committed, but no replica confirmed it in time")
    }

    /// libpq's last error on one line.
    static func message(of handle: OpaquePointer, hiding password: String?) -> String {
        var text = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        text = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        // libpq does not print passwords. Should a server repeat one, it ends here.
        if let password, !password.isEmpty { text = text.replacingOccurrences(of: password, with: "…") }
        return text.isEmpty ? "the connection failed" : text
    }

    /// Closes the connection, whose state is unknown now.
    func lost(_ message: String) -> StoreError {
        let failure = ServerFailure.lost(message)
        self.failure = failure
        close()
        return failure.storeError
    }

    /// C strings and a null pointer after them.
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
