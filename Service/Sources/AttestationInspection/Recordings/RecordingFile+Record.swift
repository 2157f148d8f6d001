package import StrictJSON
internal import Verification

extension RecordingFile.Changes {
    /// The changes that an app record makes to a replay.
    ///
    /// - Parameters:
    ///   - format: the format of the evidence.
    ///   - record: the record, in the form of the admin API.
    ///   - policies: the record's policies by kind, in the form of a response of the what-if route.
    /// - Returns: nil if `record` has no settings for the format's platform, or `policies` has no policy for the format.
    package init?(of format: String, by record: JSONObject, policies: JSONObject) {
        let kind = EvidenceFormat(rawValue: format)?.policy ?? .ios
        guard let policy = policies[kind.rawValue], let app = record[kind.platform]?.object else { return nil }
        self.init()
        self.policy = policy
        packages = app["packages"]?.array?.compactMap(\.string)
        furtherRoots = app["trust_anchors"]?.array?.compactMap(\.string) ?? []
    }
}
