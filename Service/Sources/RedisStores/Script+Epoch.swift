internal import AuthService

extension Script {
    /// Defines `advance`, and the functions that read and write a trail of clock readings.
    ///
    /// `advance` records a reading of the server's clock, `t`, that is later than the latest one, `at`.
    ///
    /// The readings from `since` to `at` are a stretch: none is further than 720 s from the next. The trail holds the earlier
    /// stretches. If the clock falls, the readings that are later than its new time were wrong. Around each of them, Redis may have
    /// removed the claims of accepted requests.
    static let advance = """
        local function stretches(trail)
            local all = {}
            for first, last in string.gmatch(trail or '', '(%d+)%-(%d+)') do
                all[#all + 1] = {tonumber(first), tonumber(last)}
            end
            return all
        end
        local function written(all)
            -- The nearest two become one. Those far apart stay, because what lies between them would be refused.
            while #all > 64 do
                local least = 1
                for i = 2, #all - 1 do
                    if all[i + 1][1] - all[i][2] < all[least + 1][1] - all[least][2] then least = i end
                end
                all[least][2] = all[least + 1][2]
                table.remove(all, least + 1)
            end
            for i = 1, #all do all[i] = string.format('%d-%d', all[i][1], all[i][2]) end
            return table.concat(all, ',')
        end
        local function advance(call, at, t, since)
            if t - at <= 720 then
                if since then return call('HSET', KEYS[1], 'at', t) end
                return call('HSET', KEYS[1], 'at', t, 'since', at)
            end
            local all = stretches(redis.call('HGET', KEYS[1], 'trail'))
            all[#all + 1] = {since or at, at}
            call('HSET', KEYS[1], 'at', t, 'since', t, 'trail', written(all))
        end

        """

    /// Confirms the epoch of a partition, or begins the next one.
    ///
    /// KEYS: the epoch. ARGV, empty where there is no value:
    /// 1. the server's run id
    /// 2. its replication id
    /// 3. its count of evicted keys
    /// 4. the id for a new epoch
    /// 5. the node's clock
    /// 6. whether there may have been claims before: `0`, `1`, or `?` (unknown)
    /// 7. the replication id that ARGV 2 continues
    /// 8. the latest reading of the server's clock that the node saw and could not record
    /// 9. the id of the claims' history
    /// 10. `1` if an epoch may begin under ARGV 9, otherwise `0`
    /// 11. the system identifier of the node's PostgreSQL
    /// 12. the timeline of the node's PostgreSQL
    /// 13. the id that the node replaced by ARGV 9
    /// 14. the time in the negative answer of an earlier call, as a positive number
    ///
    /// Answers one of these:
    /// - id, losses and unclaimed end of the epoch
    /// - nil: ARGV 6 is `?`, and the script must know whether there may have been claims
    /// - 0: a new epoch must begin, and ARGV 10 does not allow it
    /// - a positive number: the newest timeline; the node's timeline is older
    /// - a negative number: the negated time of the server's clock. The node's timeline is newer, or older under another id. The
    ///   node must first make its PostgreSQL give no unclaimed end for the next `SecondClaim.settling` seconds. Then it calls
    ///   again within a minute, with this time as ARGV 14.
    static let beginEpoch = Script(
        advance + """
            local e = redis.call('HMGET', KEYS[1], 'id', 'run', 'rep', 'ev', 'at', 'loss', 'keeper', 'sys', 'tl', 'since', 'trail',
                'end')
            local t = tonumber(redis.call('TIME')[1])
            local at, unrecorded, since = tonumber(e[5] or ''), tonumber(ARGV[8]), tonumber(e[10] or '')
            -- A node that does not know stretches may have left one ahead of the clock.
            local latest = at and math.max(at, unrecorded or at, since or at)
            local isKept = (e[7] or '') == ARGV[9]
            local isNodes = isKept or (ARGV[13] ~= '' and e[7] == ARGV[13])
            local apart = e[8] == ARGV[11] and (tonumber(ARGV[12]) or 0) - (tonumber(e[9] or '') or 0) or 0
            -- Under another id, a node at the former primary names one there, and forgets the timeline.
            if apart > 0 or (apart < 0 and not isNodes) then
                local named = tonumber(ARGV[14])
                if not named or t < named or t > named + 60 then return -t end
                -- Before the node names a new id. No node claims by the former primary from now on.
                if apart > 0 then redis.call('HSET', KEYS[1], 'tl', ARGV[12]) end
            end
            if not isKept and ARGV[10] == '0' then return 0 end
            if isNodes and e[8] == ARGV[11] and e[9] and tonumber(e[9]) > (tonumber(ARGV[12]) or 0) then
                return tonumber(e[9])
            end
            local function note()
                if ARGV[11] ~= '' and not (isKept and e[8] == ARGV[11] and e[9] == ARGV[12]) then
                    redis.call('HSET', KEYS[1], 'sys', ARGV[11], 'tl', ARGV[12])
                end
            end
            if isKept and e[1] and latest and e[2] == ARGV[1] and e[4] == ARGV[3] and t + \(ClockHistory.tolerance) >= latest then
                local isSame = e[3] == ARGV[2]
                if not isSame and ARGV[7] ~= '' and e[3] == ARGV[7] then
                    redis.call('HSET', KEYS[1], 'rep', ARGV[2])
                    isSame = true
                end
                if isSame then
                    -- A full server takes no write, and no claim either.
                    if t > at then advance(unrecorded and redis.call or redis.pcall, at, t, since) end
                    note()
                    return {e[1], e[6] or '', e[12] or ''}
                end
            end
            if ARGV[10] == '0' then return 0 end
            local kept, earlier, seen, ranges = {}, {}, {}, 0
            local function add(list, first, last)
                local text = first and string.format(last > first and '%d-%d' or '%d', first, last)
                if text and not seen[text] then
                    seen[text] = true
                    list[#list + 1] = {last, text}
                end
            end
            if not e[1] and ARGV[6] == '?' then return false end
            if e[1] or ARGV[6] ~= '0' then
                local node = tonumber(ARGV[5])
                add(kept, t, t)
                add(kept, node, node)
                add(kept, at, at)
                add(kept, unrecorded, unrecorded)
                -- Of the losses so far, those before the first `ended` have an unclaimed end. The new one is not earlier, so
                -- it may take its place. The others keep their whole interval, also beside a new loss at the same reading.
                local of, ended = string.match(e[12] or '', '^(%w+) (%d+) %d+$')
                ended = of == e[1] and tonumber(ended) or 0
                local number, before = 0, seen
                for first, last in string.gmatch(e[6] or '', '(%d+)%-?(%d*)') do
                    number = number + 1
                    if number == ended + 1 then seen = {} end
                    add(earlier, tonumber(first), tonumber(last) or tonumber(first))
                    if number <= ended and earlier[#earlier] then earlier[#earlier].ended = true end
                end
                seen = before
            end
            local all, right = stretches(e[11]), {}
            if at then all[#all + 1] = {math.min(since or at, at), math.max(since or at, at)} end
            since = t
            for i = 1, #all do
                local first, last = all[i][1], all[i][2]
                if last > t then
                    add(kept, math.max(first, t), last)
                    ranges = ranges + 1
                    last = t
                end
                if i == #all and first <= t and t - last <= 720 then
                    since = first
                elseif first <= t then
                    right[#right + 1] = {first, last}
                end
            end
            -- Of earlier losses the latest: what a clock that is ahead loses counts for longest.
            table.sort(earlier, function(a, b) return a[1] > b[1] end)
            local most = math.min(#earlier, 64 + ranges - #kept)
            for i = 1, most do if earlier[i].ended then kept[#kept + 1] = earlier[i] end end
            local begun = #kept
            for i = 1, most do if not earlier[i].ended then kept[#kept + 1] = earlier[i] end end
            for i = 1, #kept do kept[i] = kept[i][2] end
            local loss = table.concat(kept, ',')
            redis.call('HSET', KEYS[1], 'id', ARGV[4], 'run', ARGV[1], 'rep', ARGV[2], 'ev', ARGV[3], 'at', t, 'loss', loss,
                'keeper', ARGV[9])
            redis.call('HSET', KEYS[1], 'since', since, 'trail', written(right),
                'begun', ARGV[4] .. ' ' .. begun, 'born', t * 1000 + math.floor(redis.call('TIME')[2] / 1000))
            redis.call('HDEL', KEYS[1], 'end')
            if not isNodes then redis.call('HDEL', KEYS[1], 'sys', 'tl') end
            note()
            return {ARGV[4], loss, ''}
            """)

    /// Ends an epoch whose claims may be missing although its hash does not show that. Claims under it are refused from then on,
    /// and `beginEpoch` begins the next one with a loss.
    ///
    /// The cause is a policy that evicts keys, a slot that is being moved, or data that went back to an earlier state. An epoch
    /// that began after a node last saw the cause is not ended, because its own loss covers the time before. While a slot is being
    /// moved, no claim is accepted, because its keys must all be on one server.
    ///
    /// KEYS: the epoch. ARGV: an id that no node uses; the milliseconds since the node last saw the cause.
    static let endEpoch = Script(
        """
        local e = redis.call('HMGET', KEYS[1], 'id', 'born')
        local clock = redis.call('TIME')
        local now, born = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(e[2] or '')
        if not e[1] or (born and born <= now and now - born <= tonumber(ARGV[2])) then return 0 end
        redis.call('HSET', KEYS[1], 'id', ARGV[1], 'ev', '')
        return 1
        """)

    /// Counts a node's rounds of checks at a server.
    ///
    /// KEYS: the epoch, the node's count. ARGV: the count and the clock in the server's last answer to this node, or 0
    /// and 0. Answers the next count and the server's clock in milliseconds. The count is -1 if the server now has a
    /// smaller count than in the last answer, and no epoch has begun since that answer. A count expires an hour after the
    /// node's last round. An expired count does not cause the answer -1.
    static let countRound = Script(
        """
        local clock = redis.call('TIME')
        local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
        local count, last, at = tonumber(redis.call('GET', KEYS[2]) or ''), tonumber(ARGV[1]), tonumber(ARGV[2])
        local hasExpired = not count and (now < at or now - at >= 3000000)
        count = count or 0
        if count < last and not hasExpired then
            local born = tonumber(redis.call('HGET', KEYS[1], 'born') or '')
            if not born or born <= at then return {-1, now} end
        end
        redis.call('SET', KEYS[2], count + 1, 'EX', 3600)
        return {count + 1, now}
        """)

    /// Records an epoch's unclaimed end (`SecondClaim`): the latest date of the requests whose claims Redis lost and PostgreSQL may lack.
    /// The losses with which the epoch began then refuse no later dates. Does nothing if the epoch has an unclaimed end already,
    /// or if another epoch or another claims' history has begun.
    ///
    /// `begun` and `end` contain the id of their epoch, because a node of the previous version that begins an epoch leaves both
    /// unchanged.
    ///
    /// KEYS: the epoch. ARGV: the epoch's id, the id of the claims' history, the unclaimed end. Answers the unclaimed end that the
    /// epoch now has, or an empty text.
    static let shortenEpoch = Script(
        """
        local e = redis.call('HMGET', KEYS[1], 'id', 'keeper', 'begun', 'end')
        if e[1] ~= ARGV[1] or e[2] ~= ARGV[2] then return '' end
        if string.match(e[3] or '', '^(%w+) %d+$') ~= ARGV[1] then return '' end
        if string.match(e[4] or '', '^(%w+) ') == ARGV[1] then return e[4] end
        local text = e[3] .. ' ' .. ARGV[3]
        redis.call('HSET', KEYS[1], 'end', text)
        return text
        """)

    /// Records the server's clock in an epoch.
    ///
    /// KEYS: the epoch.
    static let recordTime = Script(
        advance + """
            local t = tonumber(redis.call('TIME')[1])
            local e = redis.call('HMGET', KEYS[1], 'at', 'since')
            local at = tonumber(e[1] or '')
            if at and t > at then advance(redis.call, at, t, tonumber(e[2] or '')) end
            return 1
            """)
}
