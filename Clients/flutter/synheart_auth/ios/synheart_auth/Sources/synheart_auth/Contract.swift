/// The contract of the platform channels, as `contract/channel.json` has it. A test compares the two.
enum Contract {
    /// The channel of the calls.
    static let callsChannel = "ai.synheart.auth/calls"
    /// The channel of the changes of state.
    static let statesChannel = "ai.synheart.auth/states"
    /// The code for a malformed message.
    static let malformed = "INVALID_MESSAGE"
    /// The code of a call whose caller cancelled it.
    static let cancelled = "CANCELLED"

    private static let identityStates = [
        "unregistered", "challengeReceived", "keyReady", "registering", "registered", "keyInvalid",
    ]
    private static let registrationStatuses = ["registered", "alreadyRegistered", "pending"]
    private static let rotationReasons = ["scheduled", "compromise"]
    private static let resetReasons = ["server_instructed", "user_requested", "key_lost"]
    private static let schemes = ["one", "two"]
    private static let androidProofs = ["playIntegrity", "keyAttestation", "both", "either"]
    private static let recoveries = ["none", "retry", "configure", "register", "rotate", "reset", "correctClock"]

    private static let largestInteger: Int64 = 9_007_199_254_740_991
    private static let largestBody = 16_777_216
    private static let optionalCall = Shape.optional(.integer(1...largestInteger))
    private static let appID = Shape.text(128)
    private static let body = Shape.bytes(largestBody)
    private static let optionalScheme = Shape.optional(.choice(schemes))

    static let registration = Shape.message(["status": .choice(registrationStatuses), "deviceId": .text(64)])
    static let keyRotation = Shape.message(["deviceId": .text(64), "effectiveAt": .integer(0...253_402_300_799)])
    static let deviceToken = Shape.message(["token": .text(16384), "remainingMs": .integer(0...600_000)])
    static let header = Shape.message(["name": .text(256), "value": .text(16384)])
    static let headers = Shape.items(header, max: 256)
    static let authAnswer = Shape.message(["status": .integer(100...599), "headers": headers, "body": body])
    static let stateChange = Shape.message([
        "appId": appID, "from": .choice(identityStates), "to": .choice(identityStates),
    ])
    static let errorDetails = Shape.optional(
        .message([
            "recovery": .choice(recoveries), "retryAfterMs": .optional(.integer(0...86_400_000)), "fromService": .flag,
            "mayHaveHappened": .flag, "from": .optional(.choice(identityStates)),
            "to": .optional(.choice(identityStates)),
        ]))

    /// The methods of the calls channel.
    static let calls: [String: Call] = [
        "configure": Call([
            "baseUrl": .text(2048), "origins": .items(.text(2048), max: 32), "aliases": .items(.text(2048), max: 32),
            "scheme": .choice(schemes), "rotatesAutomatically": .flag,
            "cloudProjectNumber": .optional(.integer(1...largestInteger)),
            "androidProof": .choice(androidProofs), "developmentMode": .flag,
        ]),
        "isRegistered": Call(["appId": appID], .flag),
        "registerDevice": Call(["call": optionalCall, "appId": appID, "joins": .flag], registration),
        "getDeviceId": Call(["appId": appID], .optional(.text(64))),
        "getState": Call(["appId": appID], .choice(identityStates)),
        "signRequest": Call(
            ["appId": appID, "method": .text(32), "path": .text(16384), "body": body, "scheme": optionalScheme], headers
        ),
        "sign": Call(
            [
                "call": optionalCall, "appId": appID, "method": .text(32), "url": .text(16384), "body": body,
                "scheme": optionalScheme, "asserting": .flag,
            ], headers),
        "send": Call(
            [
                "call": optionalCall, "appId": appID, "method": .text(32), "url": .text(16384), "headers": headers,
                "body": body, "scheme": optionalScheme, "asserting": .flag, "timeoutMs": .integer(1...600_000),
                "maximumAnswer": .integer(0...Int64(largestBody)),
            ], authAnswer),
        "deviceToken": Call(
            ["call": optionalCall, "appId": appID, "audience": .optional(.text(1024))], deviceToken),
        "rotateKey": Call(["call": optionalCall, "appId": appID, "reason": .choice(rotationReasons)], keyRotation),
        "resetDeviceIdentity": Call(["call": optionalCall, "appId": appID, "reason": .choice(resetReasons)]),
        "maintain": Call(["call": optionalCall, "appId": appID]),
        "correctClockSkew": Call(["serverTimestamp": .number, "appId": .optional(.text(128))]),
        "cancel": Call(["call": .integer(1...largestInteger)]),
    ]
}
