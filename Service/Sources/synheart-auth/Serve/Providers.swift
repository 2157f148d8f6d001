import AttestationProviders
import AuthContract
import AuthServer
import AuthService

/// The clients of Apple's and Google's services that a running auth service uses, and their background work.
struct Providers {
    /// The Google services that registrations use.
    let evidence: GoogleProviders
    private let lists: RevocationLists
    private let receipts: ReceiptRefreshJob?

    /// - Parameter http: the HTTP client. Its creator shuts it down.
    init(
        _ configuration: ServiceConfiguration, key: DeviceCheckKey?, stores: any StoreEngine, http: ProviderHTTP
    ) throws {
        var revocations = RevocationSettings()
        revocations.directory =
            try configuration.text(.revocationsDirectory) ?? configuration.storePlace().file.map { $0 + "-revocations" }
        revocations.maximumAgeSeconds = configuration.revocationsMaximumAge
        lists = RevocationLists(http: http, settings: revocations)
        var google = GoogleSettings()
        google.playIntegrityURL = configuration.text(.googleURL) ?? google.playIntegrityURL
        evidence = GoogleProviders(http: http, lists: lists, settings: google)
        receipts = key.map { Self.receipts(configuration, $0, stores, http) }
    }

    /// The job that exchanges receipts at Apple under the configured key.
    private static func receipts(
        _ configuration: ServiceConfiguration, _ key: DeviceCheckKey, _ stores: any StoreEngine, _ http: ProviderHTTP
    ) -> ReceiptRefreshJob {
        var settings = AppleReceiptSettings()
        if let url = configuration.text(.appleURL) { (settings.productionURL, settings.developmentURL) = (url, url) }
        return ReceiptRefreshJob(
            store: stores.receipts, exchange: AppleReceipts(http: http, keys: [key], settings: settings),
            policy: configuration.receiptRefresh)
    }

    /// Updates the revocation lists that the apps name, and refreshes receipts, until the task is cancelled.
    func run(for service: AuthService) async {
        await lists.keep(await Self.lists(of: service, ifAllCanBeRead: false) ?? [])
        async let keepingLists: Void = lists.run { await Self.lists(of: service, ifAllCanBeRead: true) }
        await receipts?.run(for: service)
        await keepingLists
    }

    /// The sources of the revocation lists that apps name; nil if the app records cannot be read. With `ifAllCanBeRead`,
    /// also nil if a single record cannot be read.
    private static func lists(of service: AuthService, ifAllCanBeRead: Bool) async -> Set<String>? {
        guard let apps = try? await service.apps.readableRecords(), !ifAllCanBeRead || apps.unreadable.isEmpty else {
            return nil
        }
        return Set(apps.records.compactMap { $0.android?.keyAttestation.statusList }).subtracting(["none"])
    }

    /// The source and age of each list that an app names; nil if no app names one.
    ///
    /// - Throws: If a list is unusable. The error has the list's source, age and failure.
    func checkLists() async throws -> String? {
        let states = await lists.states()
        for state in states where !state.isUsable {
            let age = state.ageSeconds.map { "\($0) s old" } ?? "never loaded"
            throw CommandFailure(.impossible, "\(state.source): \(age), \(state.failure ?? "too old")")
        }
        let ages = states.compactMap { state in state.ageSeconds.map { "\(state.source): \($0) s old" } }
        return ages.isEmpty ? nil : ages.joined(separator: "; ")
    }
}
