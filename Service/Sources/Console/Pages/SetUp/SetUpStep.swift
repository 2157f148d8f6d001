/// A step of an app's set-up, with its fields.
enum SetUpStep: String, CaseIterable, Sendable {
    case app, ios, android, policy, review

    var title: String {
        switch self {
        case .app: "The app"
        case .ios: "iOS and macOS"
        case .android: "Android"
        case .policy: "How it begins"
        case .review: "Check and add"
        }
    }

    /// Instructions before the fields, one or two sentences each.
    var notes: [String] {
        switch self {
        case .app:
            [
                "A record says which builds may register, and how their requests are judged. Builds for users and builds for "
                    + "testers have a record and an id each."
            ]
        case .ios:
            [
                "In Xcode, add the capability App Attest to the target of the app: Signing & Capabilities, + Capability.",
                "Its entitlement com.apple.developer.devicecheck.appattest-environment chooses the environment of builds that "
                    + "Xcode installs: development, also if it is absent. Builds of TestFlight and of the App Store are always "
                    + "production.",
            ]
        case .android:
            [
                "In Play Console: Test and release, App integrity, Play Integrity API. Link a Google Cloud project there, and "
                    + "enable the Play Integrity API in that project.",
                "Standard requests need a service account of that project. Classic requests need the response encryption keys. "
                    + "Without either of them no token of Play Integrity can be opened.",
            ]
        case .policy:
            [
                "An app that observes refuses no request of your users: it counts what it would refuse. The page Rolling out of "
                    + "the handbook has the numbers that say when enforce is safe."
            ]
        case .review: []
        }
    }

    /// The fields, without their values. The names are those in the form.
    var fields: [SetUpField] {
        switch self {
        case .app: Self.appFields
        case .ios: Self.iosFields
        case .android: Self.androidFields
        case .policy: Self.policyFields
        case .review: []
        }
    }

    private static let appFields = [
        SetUpField(
            "app_id", "App id",
            "The id that devices name, such as com.example.app: up to 128 of A-Z a-z 0-9 . _ -. It never changes.",
            .text(maximum: 128), member: "app_id"),
        SetUpField(
            "app_name", "Name (optional)", "For people. Without it: the app id.", .text(maximum: 128), member: "name"),
        SetUpField(
            "channel", "Builds",
            "Fixed once the app has devices. Only staging and dev may have devices in development mode.",
            .choice([
                Choice("production", "production: for users"), Choice("staging", "staging: for testers"),
                Choice("dev", "dev: for developers"),
            ]), member: "build_channel"),
        SetUpField(
            "development", "Devices in development mode may register",
            "For simulators, emulators and CI, which prove nothing.", .check, member: "development_integrity_allowed"),
        SetUpField("with_ios", "The app runs on iOS or macOS", nil, .check, member: "needs a platform"),
        SetUpField("with_android", "The app runs on Android", nil, .check, member: "needs a platform"),
    ]

    private static let iosFields = [
        SetUpField(
            "team_id", "Team id",
            "10 letters and digits. developer.apple.com: Account, Membership details. An old App ID can have another prefix: "
                + "Certificates, Identifiers & Profiles, Identifiers, the app, App ID Prefix.",
            .text(maximum: 64), member: "ios.app_ids"),
        SetUpField(
            "bundle_id", "Bundle id",
            "Such as com.example.app. In Xcode: the target, Signing & Capabilities. Also at developer.apple.com beside the prefix.",
            .text(maximum: 190), member: "ios.app_ids"),
        SetUpField(
            "environments", "Environment of App Attest",
            "Development keys cost an attacker less, so a record for users has production alone.",
            .choice([
                Choice("production", "production: TestFlight and App Store"),
                Choice("development", "development: builds that Xcode installs"),
                Choice("development,production", "both"),
            ]), member: "ios.environments"),
    ]

    private static let androidFields = [
        SetUpField(
            "package", "Package name",
            "The applicationId of the build, such as com.example.app. Play Console shows it below the name of the app.",
            .text(maximum: 190), member: "android.packages"),
        SetUpField(
            "digests", "SHA-256 of the signing certificate",
            "Play Console: App integrity, App signing, the app signing key certificate. It is not the upload key's: give that one "
                + "too, on a line of its own, only while builds that you sign yourself are installed. As Play Console shows it, "
                + "with colons, or in base64url.",
            .lines(maximum: 2000), member: "android.certificate_digests"),
        SetUpField(
            "decryption_key", "Response decryption key (classic requests)",
            "Base64. Play Console: App integrity, Play Integrity API, Settings, Classic requests, Response encryption, manage "
                + "yourself. synheart-auth playintegrity open-keys opens the file that you download.",
            .text(maximum: 128), member: "decryption_key", isSecret: true),
        SetUpField(
            "verification_key", "Response verification key (classic requests)", "Base64, from the same file.",
            .text(maximum: 512), member: "verification_key"),
        SetUpField(
            "service_account", "Service account (standard requests)",
            "The JSON file. Google Cloud: IAM, Service accounts, Keys, in the project that is linked in Play Console.",
            .lines(maximum: 16_384), member: "service_account", isSecret: true),
    ]

    private static let policyFields = [
        SetUpField(
            "mode", "Requests that would be refused", "Registrations are judged as always, in both modes.",
            .choice([
                Choice("observe", "observe: report them, and refuse none"), Choice("enforce", "enforce: refuse them"),
            ]), member: "mode"),
        SetUpField(
            "approval", "A device whose proof verified",
            "Manual is for few devices: an operator approves each one.",
            .choice([Choice("auto", "auto: registers at once"), Choice("manual", "manual: waits for an operator")]),
            member: "registration.approval"),
        SetUpField(
            "record_refusals", "Keep refused proofs for 30 days",
            "The page Refusals then shows the check that failed. What is kept identifies devices: tell your users.",
            .check,
            member: "evidence.record"),
    ]
}

/// A field of a step.
struct SetUpField: Sendable {
    let name: String
    let label: String
    let hint: String?
    let kind: ChangeField.Kind
    /// A text that the parser's errors about this field contain, such as the member's name.
    let member: String
    let isSecret: Bool

    init(
        _ name: String, _ label: String, _ hint: String?, _ kind: ChangeField.Kind, member: String,
        isSecret: Bool = false
    ) {
        (self.name, self.label, self.hint, self.kind) = (name, label, hint, kind)
        (self.member, self.isSecret) = (member, isSecret)
    }

    /// The largest size in bytes of a value that the page accepts.
    var maximum: Int {
        switch kind {
        case .text(let maximum), .lines(let maximum): maximum
        case .choice, .several, .check: 64
        }
    }

    var hasLines: Bool {
        if case .lines = kind { true } else { false }
    }

    /// The value that is used if the submitted form lacks this field.
    var initial: String {
        if case .choice(let choices) = kind { choices.first?.value ?? "" } else { "" }
    }
}
