import AuthService
import Testing

@testable import RedisStores

@Suite("URLs")
struct URLTests {
    typealias Endpoint = RedisURL.Endpoint

    @Test func `one server`() throws {
        let plain = try RedisURL("redis://host")
        #expect(plain.form == .single && plain.endpoints == [Endpoint(host: "host", port: 6379)] && !plain.usesTLS)
        #expect(plain.login == .init() && plain.database == 0)
        let full = try RedisURL("rediss://us%3Aer:p%40ss%2F@[::1]:6380/7?ca=/etc/ca%20file.pem&prefix=a:")
        #expect(full.endpoints == [Endpoint(host: "::1", port: 6380)] && full.usesTLS && full.database == 7)
        #expect(full.login == .init(user: "us:er", password: "p@ss/"))
        #expect(full.trustFile == "/etc/ca file.pem" && full.prefix == "a:")
        #expect("\(full)" == "[::1]:6380")
        #expect(try RedisURL("redis://:secret@host").login == .init(user: nil, password: "secret"))
    }

    @Test func `Sentinels and Clusters`() throws {
        let sentinels = try RedisURL(
            "rediss+sentinel://u:p@a:1,b,c:3/my%20master?db=2&sentinel_user=s&sentinel_password=q")
        #expect(sentinels.form == .sentinel(master: "my master") && sentinels.database == 2 && sentinels.usesTLS)
        #expect(sentinels.endpoints.map(\.port) == [1, 26379, 3])
        #expect(sentinels.sentinelLogin == .init(user: "s", password: "q"))
        let cluster = try RedisURL("redis+cluster://a,b:7001")
        #expect(cluster.form == .cluster && cluster.endpoints.map(\.port) == [6379, 7001])
    }

    @Test(arguments: [
        "", "host:6379", "http://host", "redis:host", "redis://", "redis://@host", "redis://user@host",
        "redis://u:@host",
        "redis://host:0", "redis://host:65536", "redis://host:+1", "redis://host:x", "redis://a,b", "redis://host/x",
        "redis://host/-1", "redis://host/1/2", "redis://[::1", "redis://[::g]", "redis://[::1]x", "redis://ho st",
        "redis://host?x=1", "redis://host?ca=/a", "redis://host?ca", "rediss://host?ca=/a&ca=/b",
        "redis://host?prefix=",
        "redis://host?prefix={a}", "redis://host?db=1", "redis://host#x", "redis://u:%zz@host", "redis+sentinel://a",
        "redis+sentinel://a/", "redis+sentinel://a,a/m", "redis+sentinel://a/m?sentinel_user=u", "redis+cluster://a/1",
        "redis+cluster://a,", "redis+cluster://a?db=1", "redis://hunter2:hunter2:hunter2@",
    ])
    func `anything else is refused, without a part that may be secret`(_ text: String) {
        let error = #expect(throws: StoreOpenError.self) { try RedisURL(text) }
        #expect(error?.code == .malformedURL)
        #expect(error?.description.contains("hunter2") == false)
    }
}
