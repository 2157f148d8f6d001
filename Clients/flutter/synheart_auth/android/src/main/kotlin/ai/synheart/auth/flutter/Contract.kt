package ai.synheart.auth.flutter

import ai.synheart.auth.flutter.Shape.Bytes
import ai.synheart.auth.flutter.Shape.Choice
import ai.synheart.auth.flutter.Shape.Flag
import ai.synheart.auth.flutter.Shape.Integer
import ai.synheart.auth.flutter.Shape.Items
import ai.synheart.auth.flutter.Shape.Message
import ai.synheart.auth.flutter.Shape.Number
import ai.synheart.auth.flutter.Shape.Text

/** The contract of the platform channels, as `contract/channel.json` has it. A test compares the two. */
internal object Contract {
    /** The channel of the calls. */
    const val CALLS = "ai.synheart.auth/calls"

    /** The channel of the changes of state. */
    const val STATES = "ai.synheart.auth/states"

    /** The code for a malformed message. */
    const val MALFORMED = "INVALID_MESSAGE"

    /** The code of a call whose caller cancelled it. */
    const val CANCELLED = "CANCELLED"

    private val identityStates =
        listOf("unregistered", "challengeReceived", "keyReady", "registering", "registered", "keyInvalid")
    private val registrationStatuses = listOf("registered", "alreadyRegistered", "pending")
    private val rotationReasons = listOf("scheduled", "compromise")
    private val resetReasons = listOf("server_instructed", "user_requested", "key_lost")
    private val schemes = listOf("one", "two")
    private val androidProofs = listOf("playIntegrity", "keyAttestation", "both", "either")
    private val recoveries = listOf("none", "retry", "configure", "register", "rotate", "reset", "correctClock")

    private const val LARGEST_INTEGER = 9_007_199_254_740_991L
    private const val LARGEST_BODY = 16_777_216
    private val optionalCall = Integer(1..LARGEST_INTEGER, nullable = true)
    private val appId = Text(128)
    private val body = Bytes(LARGEST_BODY)
    private val optionalScheme = Choice(schemes, nullable = true)

    val registration = Message("status" to Choice(registrationStatuses), "deviceId" to Text(64))
    val keyRotation = Message("deviceId" to Text(64), "effectiveAt" to Integer(0..253_402_300_799L))
    val deviceToken = Message("token" to Text(16384), "remainingMs" to Integer(0..600_000L))
    val header = Message("name" to Text(256), "value" to Text(16384))
    val headers = Items(header, 256)
    val authAnswer = Message("status" to Integer(100..599L), "headers" to headers, "body" to body)
    val stateChange = Message("appId" to appId, "from" to Choice(identityStates), "to" to Choice(identityStates))
    val errorDetails = Message(
        mapOf(
            "recovery" to Choice(recoveries),
            "retryAfterMs" to Integer(0..86_400_000L, nullable = true),
            "fromService" to Flag(),
            "mayHaveHappened" to Flag(),
            "from" to Choice(identityStates, nullable = true),
            "to" to Choice(identityStates, nullable = true),
        ),
        nullable = true,
    )

    /** The methods of the calls channel. */
    val calls: Map<String, Call> = mapOf(
        "configure" to Call(
            Message(
                "baseUrl" to Text(2048),
                "origins" to Items(Text(2048), 32),
                "aliases" to Items(Text(2048), 32),
                "scheme" to Choice(schemes),
                "rotatesAutomatically" to Flag(),
                "cloudProjectNumber" to Integer(1..LARGEST_INTEGER, nullable = true),
                "androidProof" to Choice(androidProofs),
                "developmentMode" to Flag(),
            ),
            null,
        ),
        "isRegistered" to Call(Message("appId" to appId), Flag()),
        "registerDevice" to Call(Message("call" to optionalCall, "appId" to appId, "joins" to Flag()), registration),
        "getDeviceId" to Call(Message("appId" to appId), Text(64, nullable = true)),
        "getState" to Call(Message("appId" to appId), Choice(identityStates)),
        "signRequest" to Call(
            Message(
                "appId" to appId, "method" to Text(32), "path" to Text(16384), "body" to body,
                "scheme" to optionalScheme,
            ),
            headers,
        ),
        "sign" to Call(
            Message(
                "call" to optionalCall, "appId" to appId, "method" to Text(32), "url" to Text(16384), "body" to body,
                "scheme" to optionalScheme, "asserting" to Flag(),
            ),
            headers,
        ),
        "send" to Call(
            Message(
                "call" to optionalCall, "appId" to appId, "method" to Text(32), "url" to Text(16384),
                "headers" to headers, "body" to body, "scheme" to optionalScheme, "asserting" to Flag(),
                "timeoutMs" to Integer(1..600_000L), "maximumAnswer" to Integer(0..LARGEST_BODY.toLong()),
            ),
            authAnswer,
        ),
        "deviceToken" to Call(
            Message("call" to optionalCall, "appId" to appId, "audience" to Text(1024, nullable = true)),
            deviceToken,
        ),
        "rotateKey" to Call(
            Message("call" to optionalCall, "appId" to appId, "reason" to Choice(rotationReasons)),
            keyRotation,
        ),
        "resetDeviceIdentity" to Call(
            Message("call" to optionalCall, "appId" to appId, "reason" to Choice(resetReasons)),
            null,
        ),
        "maintain" to Call(Message("call" to optionalCall, "appId" to appId), null),
        "correctClockSkew" to Call(
            Message("serverTimestamp" to Number(), "appId" to Text(128, nullable = true)),
            null,
        ),
        "cancel" to Call(Message("call" to Integer(1..LARGEST_INTEGER)), null),
    )
}
