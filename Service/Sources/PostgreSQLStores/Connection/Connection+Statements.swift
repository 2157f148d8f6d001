internal import AuthService
internal import CPostgreSQL
internal import Foundation

/// A statement and its values.
struct Statement: Sendable {
    let sql: String
    let parameters: [Parameter]

    init(_ sql: String, _ parameters: [Parameter] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}

extension Connection {
    /// Sends statements together and waits for all results. After a failed statement, the server skips the rest.
    func run(_ statements: [Statement]) throws(StoreError) -> [StatementResult] {
        guard let handle else { throw lost("the connection is closed") }
        failure = nil
        // Discard a warning that belongs to an earlier, cancelled call. That call has thrown already.
        replication.discard()
        guard isWanted else {
            // Nothing was sent, so nothing needs to be cancelled.
            throw StoreError(.tooSlow, "not begun within its deadline")
        }
        var steps: [(statement: Statement, prepares: Bool)] = []
        for statement in statements {
            if self.statements[statement.sql] == nil {
                guard prepare(statement, on: handle) else { throw lost(Self.message(of: handle, hiding: nil)) }
                steps.append((statement, true))
            }
            guard send(statement, on: handle) else { throw lost(Self.message(of: handle, hiding: nil)) }
            steps.append((statement, false))
        }
        guard PQpipelineSync(handle) == 1 else { throw lost(Self.message(of: handle, hiding: nil)) }
        try flush(handle)
        let results = try receive(steps, on: handle)
        try checkReplication()
        return results
    }

    /// Answers look-ups in one round trip. If one fails and the connection is still open, runs each of them separately.
    func answer(_ lookUps: [LookUp]) {
        guard !lookUps.isEmpty else { return }
        do throws(StoreError) {
            for (lookUp, result) in zip(lookUps, try run(lookUps.map(\.statement))) { lookUp.take(.success(result)) }
        } catch {
            if lookUps.count > 1, isOpen {
                for lookUp in lookUps { answer([lookUp]) }
            } else {
                for lookUp in lookUps { lookUp.take(.failure(error)) }
            }
        }
    }

    private func prepare(_ statement: Statement, on handle: OpaquePointer) -> Bool {
        lastStatement += 1
        let name = "s\(lastStatement)"
        let types = statement.parameters.map(\.type)
        guard PQsendPrepare(handle, name, statement.sql, Int32(types.count), types) == 1 else { return false }
        statements[statement.sql] = Prepared(name: name)
        return true
    }

    private func send(_ statement: Statement, on handle: OpaquePointer) -> Bool {
        guard let name = statements[statement.sql]?.name else { return false }
        // One buffer for all values. An empty value needs a pointer too, because a null pointer means NULL.
        var bytes: [UInt8] = []
        var (places, lengths): ([Int?], [Int32]) = ([], [])
        for parameter in statement.parameters {
            let value = parameter.encoded
            places.append(value.map { _ in bytes.count })
            lengths.append(Int32(clamping: value?.count ?? 0))
            if let value { bytes += value }
        }
        bytes.append(0)
        let formats = [Int32](repeating: 1, count: places.count)
        return bytes.withUnsafeBytes { buffer in
            let values = places.map { place in
                place.flatMap { buffer.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
            }
            return PQsendQueryPrepared(handle, name, Int32(values.count), values, lengths, formats, 1) == 1
        }
    }

    private func flush(_ handle: OpaquePointer) throws(StoreError) {
        while true {
            switch PQflush(handle) {
            case 0: return
            case 1: try wait(Int16(POLLIN | POLLOUT))
            default: throw lost(Self.message(of: handle, hiding: nil))
            }
            guard PQconsumeInput(handle) == 1 else { throw lost(Self.message(of: handle, hiding: nil)) }
        }
    }

    private func receive(
        _ steps: [(statement: Statement, prepares: Bool)], on handle: OpaquePointer
    ) throws(StoreError) -> [StatementResult] {
        var results: [StatementResult] = []
        for (statement, prepares) in steps {
            guard let result = try nextResult(handle) else { throw lost("an answer is missing") }
            switch PQresultStatus(result) {
            case PGRES_COMMAND_OK where prepares: PQclear(result)
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
                let columns = statements[statement.sql]?.columns ?? StatementResult.columns(of: result)
                statements[statement.sql]?.columns = columns
                results.append(StatementResult(result, columns: columns))
            case let status:
                // The first failure is the reason. The server skips the statements after it.
                if failure == nil, status != PGRES_PIPELINE_ABORTED { failure = ServerFailure(result) }
                if prepares { statements[statement.sql] = nil }
                PQclear(result)
            }
            // Each statement's results end with NULL.
            if let more = try nextResult(handle) {
                PQclear(more)
                throw lost("an answer is out of order")
            }
        }
        let end = try nextResult(handle)
        let isEnd = end.map { PQresultStatus($0) == PGRES_PIPELINE_SYNC } ?? false
        if let end { PQclear(end) }
        guard isEnd else { throw lost(failure?.message ?? "an answer is out of order") }
        try settleCancellation()
        if let failure { throw failure.storeError }
        return results
    }

    private func nextResult(_ handle: OpaquePointer) throws(StoreError) -> OpaquePointer? {
        while PQisBusy(handle) == 1 {
            try wait(Int16(POLLIN))
            guard PQconsumeInput(handle) == 1 else { throw lost(Self.message(of: handle, hiding: nil)) }
        }
        return PQgetResult(handle)
    }
}
