import AuthContract
import StrictJSON

/// The result of one step, as the client reported it.
struct StepResult: Sendable {
    let isDone: Bool
    let isUnsupported: Bool
    /// The error's code; nil if the step is done, or if the client named no code.
    let error: String?
    /// The status of the answer to a `send`; nil if the client named none.
    let status: Int64?
    let deviceID: String?

    /// Reads a line of the client's output; nil if it is no result.
    init?(_ line: String) {
        guard let object = (try? JSONValue(parsing: Array(line.utf8)))?.object else { return nil }
        isUnsupported = object["unsupported"]?.bool ?? false
        guard isUnsupported || object["ok"]?.bool != nil else { return nil }
        isDone = object["ok"]?.bool ?? false
        (error, status) = (object["error"]?.string, object["status"]?.integer)
        deviceID = object["device_id"]?.string
    }

    var text: String { isDone ? "ok" : error ?? "no code" }
}

/// A client's behavior in a case: the requests that arrived, and the results of its steps.
struct ClientTrace: Sendable {
    let arrivals: [Arrival]
    /// The results of each launch's steps. A launch in which the case killed the client lacks its last results.
    let results: [[StepResult]]

    // MARK: Steps

    /// Requires that a step succeeded.
    @discardableResult
    func done(_ step: Int, launch: Int = 0) throws -> StepResult {
        let result = try result(step, launch)
        guard result.isDone else { throw CaseEnd.fails("step \(step + 1): expected success, came \(result.text)") }
        return result
    }

    /// Requires that a request to a backend was answered with this status.
    func answered(_ step: Int, launch: Int = 0, _ status: Int64 = 200) throws {
        let result = try done(step, launch: launch)
        guard result.status == status else {
            throw CaseEnd.fails("step \(step + 1): expected the answer \(status), came \(result.status ?? 0)")
        }
    }

    /// Requires that a step failed with this code.
    func failed(_ step: Int, launch: Int = 0, _ code: String) throws {
        let result = try result(step, launch)
        guard !result.isDone, result.error == code else {
            throw CaseEnd.fails("step \(step + 1): expected \(code), came \(result.text)")
        }
    }

    func failed(_ step: Int, launch: Int = 0, _ code: ErrorCode) throws {
        try failed(step, launch: launch, code.rawValue)
    }

    private func result(_ step: Int, _ launch: Int) throws -> StepResult {
        guard results.indices.contains(launch), results[launch].indices.contains(step) else {
            throw CaseEnd.fails("the client says nothing about step \(step + 1)")
        }
        return results[launch][step]
    }

    // MARK: Requests

    func requests(_ name: RequestName) -> [Arrival] { arrivals.filter { $0.name == name } }

    /// Requires exactly this number of requests of this name, and returns them.
    @discardableResult
    func came(_ name: RequestName, _ count: Int) throws -> [Arrival] {
        let found = requests(name)
        guard found.count == count else {
            throw CaseEnd.fails("\(name): expected \(count) requests, came \(found.count)")
        }
        return found
    }

    /// Requires at least this number of requests of this name, and returns them.
    @discardableResult
    func came(_ name: RequestName, atLeast count: Int) throws -> [Arrival] {
        let found = requests(name)
        guard found.count >= count else {
            throw CaseEnd.fails("\(name): expected at least \(count) requests, came \(found.count)")
        }
        return found
    }

    /// Requires a pause of at least this length between the end of one exchange and another request.
    func waited(_ seconds: Double, after one: Arrival, before other: Arrival) throws {
        guard let end = one.end else { return }
        let pause = end.duration(to: other.at) / Duration.seconds(1)
        // Allow 50 ms for the inaccuracy of timers and of the clocks of two processes.
        guard pause >= seconds - 0.05 else {
            throw CaseEnd.fails("\(other.name): expected a pause of \(seconds) s, came \(pause) s")
        }
    }

    /// Requires that a signed request is dated this many seconds ahead of the service's clock, to within 5 s.
    func dated(_ arrival: Arrival, ahead seconds: Int64) throws {
        guard let signature = arrival.signature else { throw CaseEnd.fails("\(arrival.name) is not signed") }
        let ahead = signature.timestamp - arrival.time
        guard abs(ahead - seconds) <= 5 else {
            throw CaseEnd.fails("\(arrival.name): expected a time \(seconds) s ahead of the service's, came \(ahead) s")
        }
    }

    func require(_ isRight: Bool, _ otherwise: @autoclosure () -> String) throws {
        guard isRight else { throw CaseEnd.fails(otherwise()) }
    }

    // MARK: Keys

    /// The texts of the keys in the client's registrations, without duplicates.
    var registeredKeys: [String] { texts("public_key", .register) }
    /// The texts of the new keys in the client's rotations, without duplicates.
    var rotatedKeys: [String] { texts("new_public_key", .rotate) }

    private func texts(_ member: String, _ name: RequestName) -> [String] {
        requests(name).reduce(into: []) { found, arrival in
            guard let text = arrival.json[member]?.string, !found.contains(text) else { return }
            found.append(text)
        }
    }

    /// Requires that a request is signed by this key.
    func signed(_ arrival: Arrival, by key: String?) throws {
        guard let key, arrival.isSigned(by: key) else {
            throw CaseEnd.fails("\(arrival.name) is not signed by the key that is current then")
        }
    }
}

extension Arrival {
    /// The body as a JSON object; empty if it is not one.
    var json: JSONObject { (try? JSONValue(parsing: request.body))?.object ?? JSONObject() }

    /// The headers of the signature; nil if the request is unsigned or malformed.
    fileprivate var signature: SignatureHeaders? {
        try? SignatureHeaders(HeaderFields(request.headers.map { ($0.name, $0.value) }))
    }

    /// The bytes that the signature must cover; nil if the request is unsigned or malformed.
    private var message: [UInt8]? {
        switch signature {
        case .one(let headers):
            return SchemeOneMessage.bytes(
                method: request.method, path: name.path, timestamp: headers.timestamp, body: request.body)
        case .two(let headers):
            guard let origin = try? RequestOrigin("http://" + header("Host")),
                let target = try? RequestTarget(request.target)
            else { return nil }
            return try? headers.base(method: request.method, origin: origin, target: target).bytes
        case nil: return nil
        }
    }

    /// Whether the request has a valid signature by this key. Under scheme 2, this does not compare the body with its
    /// digest, because the service does.
    func isSigned(by key: String) -> Bool {
        guard let key = try? DevicePublicKey(base64: key), let message else { return false }
        return signature?.signature.isValid(for: message, by: key) ?? false
    }
}

extension ClientTrace {
    /// Requires the rules that hold in every case, whatever faults the requests meet.
    func keepsTheRules(of item: ClientCase) throws {
        let keys = registeredKeys + rotatedKeys
        var (nonces, signatures, devices): (Set<String>, Set<String>, Set<String>) = ([], [], [])
        for arrival in arrivals {
            guard arrival.isSigned else {
                guard [.challenge, .register].contains(arrival.name) else {
                    throw CaseEnd.fails("\(arrival.name) is not signed")
                }
                continue
            }
            guard keys.contains(where: arrival.isSigned) else {
                throw CaseEnd.fails("\(arrival.name) is not signed by a key of the client")
            }
            devices.insert(arrival.header(HeaderName.deviceID))
            let signature = arrival.header(HeaderName.signature) + arrival.header(HeaderName.messageSignature)
            guard signatures.insert(signature).inserted else {
                throw CaseEnd.fails("\(arrival.name) was sent twice with one signature")
            }
            let nonce = arrival.header(HeaderName.nonce).lowercased()
            guard nonce.isEmpty || nonces.insert(nonce).inserted else {
                throw CaseEnd.fails("\(arrival.name): its nonce was used before")
            }
        }
        try require(devices.count <= item.identities, "requests name \(devices.count) device ids")
        try require(
            registeredKeys.count <= item.identities, "the client made \(registeredKeys.count) keys to register with")
        try require(rotatedKeys.count <= item.newKeys, "the client made \(rotatedKeys.count) keys to rotate to")
        let resets = item.launches.joined().contains { $0.name == "reset" }
        try require(resets || requests(.device).isEmpty, "the client gave its identity up, and was not told to")
        for arrival in arrivals {
            guard let verdict = arrival.verdict, let code = verdict.code else { continue }
            guard ErrorCode(rawValue: code).map(item.allowed.contains) ?? false else {
                throw CaseEnd.fails("the service refused \(arrival.name): \(verdict.text)")
            }
        }
    }
}
