import AuthContract
import StrictJSON

extension ClientCase {
    /// A device's life from registration to deregistration, and answers with unknown members.
    static let lives: [ClientCase] = [
        .init(
            "life", "Writing a client", "the client registers, signs, rotates, fetches a token and deregisters",
            [.register, .get, .post, .rotate, .get, .token, .reset]
        ) { trace in
            for step in [0, 3, 5, 6] { try trace.done(step) }
            for step in [1, 2, 4] { try trace.answered(step) }
            for name in [RequestName.challenge, .register, .device] { try trace.came(name, 1) }
            let last = try trace.came(.get, 2)[1]
            try trace.signed(last, by: trace.rotatedKeys.first)
        },
        .init(
            "launch", "States", "a registered client keeps its identity at the next launch, and asks for nothing",
            [.register], [.register, .get]
        ) { trace in
            let id = try trace.done(0).deviceID
            try trace.require(try trace.done(0, launch: 1).deviceID == id, "the device id changed")
            try trace.answered(1, launch: 1)
            for name in [RequestName.challenge, .register] { try trace.came(name, 1) }
        },
        .init(
            "reset", "Status and deregistration", "a client that gives its identity up registers anew with another key",
            [.register, .reset, .get, .register, .get], identities: 2
        ) { trace in
            for step in [0, 1, 3] { try trace.done(step) }
            try trace.failed(2, "NOT_REGISTERED")
            try trace.answered(4)
            try trace.came(.device, 1)
            try trace.came(.get, 1)
            try trace.require(trace.registeredKeys.count == 2, "the key of a device that left was registered again")
        },
        .init(
            "reset-gone", "Status and deregistration", "NOT_REGISTERED as the answer to DELETE is done",
            [.register, .reset, .register], faults: [.device: [.refused(.notRegistered)]], identities: 2
        ) { trace in
            for step in 0..<3 { try trace.done(step) }
        },
        .init(
            "reset-lost", "Answers that are lost", "a client whose DELETE is not answered gives its identity up",
            [.register, .reset, .register, .get], faults: [.device: [.lost]], identities: 2,
            allowed: [.notRegistered]
        ) { trace in
            for step in 0..<3 { try trace.done(step) }
            try trace.answered(3)
        },
        .init(
            "answer-members", "Versions and extensions", "unknown members of answers are ignored",
            [.register, .token, .get],
            faults: [.challenge: [.withMembers], .register: [.withMembers], .token: [.withMembers]]
        ) { trace in
            for step in 0..<2 { try trace.done(step) }
            try trace.answered(2)
            for name in [RequestName.challenge, .register, .token] { try trace.came(name, 1) }
        },
    ]
}

extension Fault {
    /// The service's answer, with a member and a header that a later version may add.
    fileprivate static let withMembers = Fault.changed { answer in
        answer.edit { $0.append(("x_later", ["status": "revoked", "list": [1, true]])) }
        answer.set("X-Later", "1")
    }
}
