import AttestationTestKit
import AuthContract
import SoftwareDevice

/// The devices of the demo, each in its own folder.
struct DemoCast {
    let folder: String
    let url: String
    let appID: AppID
    let apple: AppleAuthority
    let google: GoogleAuthority

    private var settings: SoftwareDevice.Settings {
        .init(url: url, appID: appID, iosAppID: "\(SoftwareDevice.team).\(appID)")
    }

    func iPhone() throws -> DemoPhone {
        DemoPhone(try SoftwareDevice(directory: folder + "/iphone", settings: settings, authority: apple))
    }

    /// An Android phone with a StrongBox.
    func android(_ name: String, isUnlocked: Bool = false) throws -> DemoPhone {
        var options = KeyAttestationOptions.strongBox
        if isUnlocked {
            options.rootOfTrust?.deviceLocked = 0
            options.rootOfTrust?.verifiedBootState = 2
        }
        let attestation = SimulatedAndroid(package: appID.text, authority: google, options: options)
        return DemoPhone(
            try SoftwareDevice(directory: folder + "/" + name, settings: settings, attestation: attestation))
    }
}

/// A device and its connection to the service.
struct DemoPhone {
    let device: SoftwareDevice
    let http: DeviceHTTP

    init(_ device: SoftwareDevice) {
        self.device = device
        http = DeviceHTTP(device)
    }
}
