internal import StrictJSON

extension AppRecord {
    /// What the record makes the service itself open or call.
    public struct Source: Sendable, Hashable {
        /// The member that names it.
        public let member: String
        /// A URL, or the path of a file.
        public let place: String
        /// Whether it is Google's own, which any app may name.
        public let isGoogle: Bool

        fileprivate init(_ member: String, _ place: String, google: String) {
            self.member = member
            self.place = place
            isGoogle = place == google
        }
    }

    /// Every file and URL that the record names. Members that a request is compared with, such as `signature.authorities`,
    /// are never called; `trust_anchors` are certificates and not files of them.
    public var sources: [Source] {
        var sources: [Source] = []
        if let list = android?.keyAttestation.statusList, list != "none" {
            sources.append(
                Source(
                    "android.key_attestation.status_list", list,
                    google: "https://android.googleapis.com/attestation/status"))
        }
        if let account = android?.playIntegrity.serviceAccount {
            let (google, fields) = ("https://oauth2.googleapis.com/token", try? JSONValue(parsing: account.exposed))
            // Where it names none, Google's is asked.
            sources.append(
                Source(
                    "android.play_integrity.service_account.token_uri",
                    fields?.object?["token_uri"]?.string ?? google, google: google))
        }
        return sources
    }
}
