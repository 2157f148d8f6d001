import AuthContract

extension ClientCase {
    /// How a client learns the service's clock.
    static let clocks: [ClientCase] = [
        learned("clock", "after CLOCK_SKEW the client learns the clock and signs again", hasPage: false),
        learned(
            "clock-header", "where a gateway replaced the body, code and time are read from the headers", hasPage: true),
        .init(
            "clock-once", "Errors", "a second CLOCK_SKEW is reported", [.register, .token],
            faults: [.token: [.refused(.clockSkew, ahead: -200), .refused(.clockSkew, ahead: -200)]]
        ) { trace in
            try trace.failed(1, .clockSkew)
            try trace.came(.token, 2)
        },
        .init(
            "clock-far", "Clock", "a clock that is three days ahead is not learned", [.register, .token, .get],
            faults: [.token: [.refused(.clockSkew, ahead: 3 * 86_400)]]
        ) { trace in
            try trace.failed(1, .clockSkew)
            try trace.answered(2)
            try trace.dated(try trace.came(.get, 1)[0], ahead: 0)
        },
        .init(
            "clock-text", "Clock", "a time of the service that is no time is ignored", [.register, .token, .get],
            faults: [.token: [.changed { $0.set(HeaderName.serverTime, "tomorrow") }]]
        ) { trace in
            try trace.done(1)
            try trace.answered(2)
            try trace.dated(try trace.came(.get, 1)[0], ahead: 0)
        },
    ]

    private static func learned(_ id: String, _ sentence: String, hasPage: Bool) -> ClientCase {
        // The refusal gives a time 200 s behind the service's clock. The client must notice this difference, and the service
        // accepts a request with this time, because a request may be 300 s old.
        .init(
            id, hasPage ? "Errors" : "Clock", sentence, [.register, .token],
            faults: [.token: [.refused(.clockSkew, ahead: -200, hasPage: hasPage)]]
        ) { trace in
            try trace.done(1)
            try trace.dated(try trace.came(.token, 2)[1], ahead: -200)
        }
    }
}
