internal import AuthContract
internal import Logging

/// One line a request: outcome and time. Never a body, a signature, a proof or a device id.
struct RequestLog: Sendable {
    private let logger: Logger
    /// Where `logger` writes to, if that is lines of JSON and nothing is to be added to them: then no dictionary need be made
    /// for a line and put in order again, which costs more than writing it.
    private let lines: JSONLogHandler?

    /// A log that goes where this logger's messages go.
    init(logger: Logger) {
        self.logger = logger
        lines = (logger.handler as? JSONLogHandler).flatMap { $0.metadata.isEmpty ? $0 : nil }
    }

    /// - Parameters:
    ///   - route: a path of the API, never one with an id in it.
    ///   - app: the app of the request, which may be a claim of the client.
    ///   - device: the device of the request, which may be a claim of the client. The line has its hash.
    func write(
        requestID: String, method: String, route: String?, answer: Answer, reason: String?, took: Duration,
        app: AppID? = nil, device: DeviceID? = nil
    ) {
        let level: Logger.Level = answer.status >= 500 ? .error : .info
        guard level >= logger.logLevel else { return }
        let microseconds = took.components.seconds * 1_000_000 + took.components.attoseconds / 1_000_000_000_000
        // In the order of their names, as any message's are written.
        let fields: [JSONLogHandler.Field] = [
            ("app", .text(app?.text ?? "")), ("device", .text(device?.logged ?? "")),
            ("method", .text(method)), ("microseconds", .number(microseconds)), ("outcome", .text(answer.outcome)),
            ("reason", .text(LogText.bounded(reason ?? "", to: LogText.reasonBytes))), ("request_id", .text(requestID)),
            ("route", .text(route ?? "unknown")),
            ("status", .number(Int64(answer.status))),
        ]
        if let lines { return lines.write(level, "request", fields) }
        logger.log(
            level: level, "request",
            metadata: Logger.Metadata(uniqueKeysWithValues: fields.map { ($0.name, $0.value.metadata) }))
    }
}

extension JSONLogHandler.FieldValue {
    fileprivate var metadata: Logger.MetadataValue {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .stringConvertible(number)
        }
    }
}
