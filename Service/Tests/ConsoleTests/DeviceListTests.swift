import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

/// The list of devices: finding a device by its id, and how long the pending devices have waited.
@Suite struct DeviceListTests {
    @Test func `a page of a device that is not there is logged without the device's id`() async throws {
        let desk = try await Desk()
        let id = DeviceID(from: SystemRandom()).text
        let answer = await (try await desk.signedIn(.viewer)).get("/console/devices/\(Desk.app)/\(id)")
        #expect(answer.status == 404 && answer.text.contains(id))
        let reason = try #require(answer.refusal?.reason)
        #expect(!reason.contains(id), "\(reason)")
    }

    @Test func `the id of a device opens its page, whichever app it is of`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        let device = try await desk.addDevice(of: "com.example.other")
        _ = try await desk.addDevice()
        let browser = try await desk.signedIn(.viewer)
        for query in ["device=\(device)", "device=\(device)&app=com.example.other", "device=\(device.uppercased())"] {
            let page = await browser.get("/console/devices?\(query)")
            #expect(page.status == 200 && page.text.contains("<h1>Device <code>\(device)</code></h1>"))
            #expect(page.text.contains("device.registered"))
        }
        let elsewhere = await browser.get("/console/devices?device=\(device)&app=\(Desk.app)").text
        #expect(elsewhere.contains("No device matches.") && !elsewhere.contains("device.registered"))
        #expect(elsewhere.contains("href=\"/console/devices?device=\(device)\">Look in all apps"))
        let gone = await browser.get("/console/devices?app=com.example.gone").text
        #expect(gone.contains("No device matches.") && !gone.contains("No device has registered yet"))
    }

    @Test func `the hash of the log opens the page of its device, in the apps of the credential`() async throws {
        let desk = try await Desk()
        for app in ["com.example.other", "com.example.third"] { try await desk.addApp(app) }
        let (own, foreign) = (
            try await desk.addDevice(of: "com.example.other"), try await desk.addDevice(of: "com.example.third")
        )
        let browser = try await desk.signedIn(.viewer, apps: [Desk.app, "com.example.other"])
        for text in [try DeviceID(own).logged, try DeviceID(own).logged.uppercased(), own] {
            let page = await browser.get("/console/devices?device=\(text)")
            #expect(page.status == 200 && page.text.contains("<h1>Device <code>\(own)</code></h1>"))
        }
        for text in [try DeviceID(foreign).logged, foreign] {
            let page = await browser.get("/console/devices?device=\(text)")
            #expect(page.status == 200 && page.text.contains("No device matches."))
        }
    }

    @Test func `a queue says how many devices wait, and since when the first does`() async throws {
        let desk = try await Desk()
        _ = try await desk.addDevice(.pending)
        desk.clock.advance(7200)
        let browser = try await desk.signedIn(.operator)
        _ = try await desk.addDevice(.pending)
        _ = try await desk.addDevice()
        let queue = await browser.get("/console/devices?status=pending").text
        let sentence = try #require(queue.components(after: "<p>Devices that wait: 2. The first has waited since"))
        #expect(sentence.components(upTo: "</p>").contains("<small>2 hours ago</small>"))
        #expect(await browser.get("/console/devices").text.contains("Devices that wait") == false)
        #expect(await browser.get("/console/devices?status=revoked").text.contains("Devices that wait") == false)
        // For a queue with more than one page, the page does not show the number of devices.
        for _ in 0..<50 { _ = try await desk.addDevice(.pending) }
        let long = await browser.get("/console/devices?status=pending").text
        #expect(!long.contains("Devices that wait"))
        let first = try #require(long.components(after: "<p>The first has waited since"))
        #expect(first.components(upTo: "</p>").contains("<small>2 hours ago</small>"))
        #expect(await browser.get("/console/devices?status=registered").text.contains("has waited") == false)
    }

    @Test func `a long queue says since when the first device of the filter waits`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        _ = try await desk.addDevice(.pending)
        desk.clock.advance(7200)
        for _ in 0..<51 { _ = try await desk.addDevice(.pending, of: "com.example.other") }
        desk.clock.advance(600)
        let browser = try await desk.signedIn(.operator, apps: ["com.example.other"])
        let page = await browser.get("/console/devices?status=pending&app=com.example.other").text
        #expect(page.contains("The first has waited since") && page.contains("<small>10 minutes ago</small>"))
        #expect(!page.contains("<small>2 hours ago</small>"))
        let now = await browser.get("/console").text
        #expect(now.contains("Devices that wait for a decision: 51</a>. The first has waited since"))
        #expect(now.contains("<small>10 minutes ago</small>") && !now.contains("<small>2 hours ago</small>"))
        let all = await (try await desk.signedIn(.viewer)).get("/console").text
        #expect(all.contains("Devices that wait for a decision: 52</a>") && all.contains("<small>2 hours ago</small>"))
    }

    @Test func `the first page asks once for the first device that waits in many apps`() async throws {
        let desk = try await Desk()
        let apps = [Desk.app] + (1...3).map { "com.example.app\($0)" }
        for app in apps.dropFirst() { try await desk.addApp(app) }
        // Of the credential's apps, the last one has the device that has waited longest. A device of another app has waited even
        // longer.
        try await desk.addApp("com.example.other")
        for app in ["com.example.other"] + apps.reversed() {
            _ = try await desk.addDevice(.pending, of: app)
            desk.clock.advance(3600)
        }
        let browser = try await desk.signedIn(.operator, apps: apps)
        await desk.stores.interrupt(.devices) { stores in stores.fail(.devices) }
        let page = await browser.get("/console").text
        #expect(page.contains("Devices that wait for a decision: 4</a>. The first has waited since"))
        #expect(page.contains("<small>4 hours ago</small>") && !page.contains("This page is not complete"))
    }
}
