import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import Logging
import SoftwareDevice
import StrictJSON

/// Plays an iPhone's whole life, and the admission of Android phones, against a fresh service.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Watch an iPhone's whole life and an Android phone's admission, step by step.",
        discussion: """
            Starts a service with a temporary database on a free port, and runs the real SDK against it over HTTP. The test kit \
            plays Apple and Google. Leaves nothing behind unless --keep names a folder. Exit code 0: every step had its expected \
            result.

              synheart-auth demo
              synheart-auth demo --keep demo-files
            """)
    @Option(help: "Keep database, authorities and devices in this folder.") var keep: String?

    func run() async throws {
        try await reporting {
            LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
            try await withFolder(keep, named: "demo") { folder in
                let (appID, authorities) = (try AppID("com.example.app"), AuthorityOptions(in: folder))
                var record = try AppRecord(JSONFields(.object(AppsCommand.Example.record(app: appID, authorities))))
                // A certificate chain raises the assurance of a key only if there is a list of revoked keys.
                record.android?.keyAttestation.statusList = folder + "/revoked-keys.json"
                try await EmbeddedService.run(in: folder, app: record, providers: DemoProviders()) { embedded in
                    let cast = DemoCast(
                        folder: folder, url: embedded.addresses.publicURL, appID: appID, apple: try authorities.apple(),
                        google: try authorities.google())
                    try await DemoPlay(cast: cast, service: embedded.service).run()
                }
            }
        }
    }
}
