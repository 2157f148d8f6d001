internal import AuthService
internal import Bytes
internal import Crypto
internal import RESP

/// A Lua script, which Redis executes atomically.
struct Script: Sendable {
    private let source: String
    private let digest: String

    init(_ source: String) {
        self.source = source
        digest = Hexadecimal.encode(Array(Insecure.SHA1.hash(data: Array(source.utf8))))
    }

    /// The command that runs the script.
    ///
    /// - Parameters:
    ///   - words: the number of words that `add` adds. These words are the number of keys, the keys and the arguments.
    ///   - isLoaded: whether the server has the script in its cache.
    func command(words: Int, isLoaded: Bool = true, _ add: (inout RESPCommand) -> Void) -> RESPCommand {
        var command = RESPCommand(isLoaded ? ["EVALSHA", digest] : ["EVAL", source], count: words + 2)
        add(&command)
        return command
    }
}

extension Script {
    /// The server's time, which is the same for the whole script: `t` in whole seconds, and the function `seconds`, which returns
    /// a given time or, without one, the server's time with its fraction.
    private static let time = """
        local clock = redis.call('TIME')
        local t = tonumber(clock[1])
        local function seconds(given)
            if given ~= '' then return tonumber(given) end
            return t + clock[2] / 1000000
        end

        """

    /// A token bucket with the rules of the service's `TokenBuckets`.
    private static let tokens = """
        local function take(key, burst, perMinute, cost, now, peek)
            local kept = redis.call('GET', key)
            local tokens, at = string.match(kept or '', '^(%S+) (%S+)$')
            tokens, at = tonumber(tokens) or burst, tonumber(at) or now
            tokens = math.min(burst, tokens + math.max(0, now - at) * perMinute / 60)
            local wait = 0
            if tokens >= cost then
                if not peek then tokens = tokens - cost end
            elseif perMinute > 0 then
                wait = math.max(1, math.min(300, math.ceil((cost - tokens) * 60 / perMinute)))
            else
                wait = 300
            end
            if not peek then
                local life = 86400000
                if perMinute > 0 then life = math.min(life, math.ceil((burst - tokens) * 60000 / perMinute) + 1000) end
                -- 14 digits: a tenth of a millisecond.
                redis.call('SET', key, tokens .. ' ' .. now, 'PX', life)
            end
            return wait
        end

        """

    /// Takes tokens from a bucket.
    ///
    /// KEYS: the bucket. ARGV: burst, tokens a minute, cost, `1` to only check without taking tokens, the time (empty: the
    /// server's). Answers the seconds to wait, or 0.
    static let take = Script(
        time + tokens + """
            return take(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), seconds(ARGV[5]), ARGV[4] == '1')
            """)

    /// Defines `claim` and `isCurrent`.
    ///
    /// `claim` makes all claims, or none. `isCurrent` checks the epoch and records the server's clock.
    private static let claims =
        time + advance + """
            -- Redis itself writes a number as one with a fraction of 17 digits, which takes longer.
            local function keep(key, expiry)
                redis.call('SET', key, string.format('%d', expiry), 'PXAT',
                    string.format('%d', (expiry + \(ClaimHistory.nodesApart)) * 1000))
            end
            local function claim(first, expiry, now, tagExpiry)
                local last = #KEYS
                if tagExpiry then
                    local kept = redis.call('GET', KEYS[last])
                    if kept and tonumber(kept) > now then return 0 end
                    last = last - 1
                end
                if expiry <= now or expiry + \(ClaimHistory.nodesApart) <= t then return -2 end
                for i = first, last do
                    local kept = redis.call('GET', KEYS[i])
                    if kept and tonumber(kept) > now then return i - first + 1 end
                end
                for i = first, last do keep(KEYS[i], expiry) end
                if tagExpiry then keep(KEYS[#KEYS], tagExpiry) end
                return 0
            end
            local function isCurrent(id)
                local e = redis.call('HMGET', KEYS[1], 'id', 'at', 'since')
                local at = tonumber(e[2] or '')
                if e[1] ~= id or not at or t + \(ClockHistory.tolerance) < at then return false end
                if t > at then advance(redis.call, at, t, tonumber(e[3] or '')) end
                return true
            end

            """

    /// Makes the claims if the epoch is still current.
    ///
    /// KEYS: the epoch, the claims, the tag if there is one. ARGV: the id of the epoch, the expiry, the node's clock, the expiry of
    /// the tag (empty: there is none). Answers 0 (claimed, or a live tag shows that this caller made these claims before), the
    /// number from 1 of the first claim that was taken already, -1 (the epoch is not current) or -2 (expired).
    static let claim = Script(
        claims + """
            if not isCurrent(ARGV[1]) then return -1 end
            return claim(2, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
            """)

    /// Takes a token from the device's bucket if the epoch is still current. Makes the claims if the bucket had a token.
    ///
    /// KEYS: the epoch, the bucket, the claims, the tag if there is one. ARGV: as for `claim`, then burst and tokens a minute,
    /// and the time as for `take`. Answers as for `claim`, or 1000 plus the seconds to wait.
    static let limitedClaim = Script(
        claims + tokens + """
            if not isCurrent(ARGV[1]) then return -1 end
            local wait = take(KEYS[2], tonumber(ARGV[5]), tonumber(ARGV[6]), 1, seconds(ARGV[7]), false)
            if wait > 0 then return 1000 + wait end
            return claim(3, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
            """)

    /// Stores the number of an app's live claims on one node, and returns the sum of the other nodes' numbers.
    ///
    /// KEYS: a hash of the app with each node's last number and its time. ARGV: the node, the number, the time as for `take`.
    /// Answers the sum of the other nodes' numbers. A node's number is used until even claims of requests dated ahead have expired.
    static let exchange = Script(
        time + """
            local now = seconds(ARGV[3])
            local sum = 0
            local all = redis.call('HGETALL', KEYS[1])
            for i = 1, #all, 2 do
                local count, at = string.match(all[i + 1], '^(%d+) (%S+)$')
                if not count or tonumber(at) + \(ReplayClaim.longestLife) < now then
                    redis.call('HDEL', KEYS[1], all[i])
                elseif all[i] ~= ARGV[1] then
                    sum = sum + tonumber(count)
                end
            end
            redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %.17g', tonumber(ARGV[2]), now))
            redis.call('EXPIRE', KEYS[1], 1000)
            return sum
            """)

    /// Stores a challenge. If there are too many, evicts an expired one, which is kept only to explain its refusal, or else the oldest of
    /// the busiest source.
    ///
    /// The index holds all challenges that were put within the life of a challenge, including taken ones. First, the script
    /// corrects the counts of sources whose challenges have expired, a few at a time. Nothing is evicted before all counts are
    /// correct, because wrong counts would evict live challenges.
    ///
    /// KEYS: the challenge, its source's index (a sorted set), the counts of all sources (a sorted set), the sum of the counts,
    /// when the first challenge of each source ends (a sorted set). ARGV: the value, its life in milliseconds, the source, the
    /// prefixes of the keys of challenges and of indexes, the name of the challenge, the maximum, the milliseconds for which an expired
    /// challenge is kept.
    /// Answers 1, or 0 if the challenge already exists.
    static let putChallenge = Script(
        """
        local t = redis.call('TIME')
        local now = t[1] * 1000 + math.floor(t[2] / 1000)
        local life, maximum = tonumber(ARGV[2]), tonumber(ARGV[7])
        if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', life) then return 0 end
        local function recount(source)
            local index = ARGV[5] .. source
            redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
            local count = redis.call('ZCARD', index)
            local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
            if first[2] then
                redis.call('ZADD', KEYS[3], count, source)
                redis.call('ZADD', KEYS[5], first[2], source)
            else
                redis.call('ZREM', KEYS[3], source)
                redis.call('ZREM', KEYS[5], source)
            end
            return count
        end
        local function total() return tonumber(redis.call('GET', KEYS[4]) or '0') end
        local function counted(source) return tonumber(redis.call('ZSCORE', KEYS[3], source) or '0') end
        local ended = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, 16)
        local corrected = 0
        for _, source in ipairs(ended) do corrected = corrected - counted(source) + recount(source) end
        local before = counted(ARGV[3])
        redis.call('ZADD', KEYS[2], now + life, ARGV[6])
        redis.call('PEXPIRE', KEYS[2], life + 60000)
        local all = total() + corrected - before + recount(ARGV[3])
        local rounds = #ended < 16 and 0 or 8
        while all > maximum and rounds < 8 do
            rounds = rounds + 1
            local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
            local isExpired = first[2] and tonumber(first[2]) <= now + tonumber(ARGV[8])
            local source = isExpired and first[1] or redis.call('ZREVRANGE', KEYS[3], 0, 0)[1]
            if not source then
                all = 0
                break
            end
            local kept = counted(source)
            local real = recount(source)
            all = all - kept + real
            if all > maximum and real > 0 and real == kept then
                local oldest = redis.call('ZPOPMIN', ARGV[5] .. source)
                if oldest[1] then redis.call('DEL', ARGV[4] .. oldest[1]) end
                all = all - real + recount(source)
            end
        end
        redis.call('SET', KEYS[4], string.format('%d', all), 'PX', life + 60000)
        redis.call('PEXPIRE', KEYS[3], life + 60000)
        redis.call('PEXPIRE', KEYS[5], life + 60000)
        return 1
        """)
}
