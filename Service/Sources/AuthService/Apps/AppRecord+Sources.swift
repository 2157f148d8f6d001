internal import Bytes
internal import PlayIntegrity
internal import StrictJSON

extension AppRecord {
    /// A file or URL that the service opens because of the record.
    package struct Source: Sendable, Hashable {
        /// The member that names the source.
        package let member: String
        /// The URL, or the path of the file.
        package let place: String
        /// Whether the source is Google's own, which any app may name.
        package let isGoogle: Bool

        fileprivate init(_ member: String, _ place: String, google: String) {
            self.member = member
            self.place = place
            isGoogle = place == google
        }
    }

    /// Every file and URL that the record chooses and the service opens. `signature.authorities` are not among them, because they
    /// are only compared with requests. Nor are `trust_anchors`, which are the certificates themselves.
    package var sources: [Source] {
        var sources: [Source] = []
        if let list = android?.keyAttestation.statusList, list != "none" {
            sources.append(
                Source(
                    "android.key_attestation.status_list", list,
                    google: "https://android.googleapis.com/attestation/status"))
        }
        if let account = android?.playIntegrity.serviceAccount {
            let (google, fields) = ("https://oauth2.googleapis.com/token", try? JSONValue(parsing: account.exposed))
            // An account without `token_uri` uses Google's.
            sources.append(
                Source(
                    "android.play_integrity.service_account.token_uri",
                    fields?.object?["token_uri"]?.string ?? google, google: google))
        }
        return sources
    }

    /// The reasons why a source of the record cannot be used, whatever it answers. The registrations that need the source get
    /// `PROVIDER_UNAVAILABLE`.
    package var sourceFaults: [String] {
        var faults: [String] = []
        // The list is not signed: TLS alone authenticates it.
        if let list = android?.keyAttestation.statusList, !list.hasPrefix("file:"), list.contains("://"),
            !SecureURL.isSecure(list)
        {
            faults.append("key_attestation.status_list is neither an https URL nor a file")
        }
        if let account = android?.playIntegrity.serviceAccount {
            do {
                _ = try ServiceAccount(JSONFields(JSONValue(parsing: account.exposed)))
            } catch {
                faults.append("play_integrity.service_account is not the file of a service account: \(error)")
            }
        }
        return faults
    }
}
