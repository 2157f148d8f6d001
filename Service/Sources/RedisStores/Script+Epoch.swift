internal import AuthService

extension Script {
    /// Records a reading of the server's clock that is later than `at`, the latest one.
    ///
    /// The trail holds earlier readings, at most 600 s apart unless the partition was quiet between them: `mark` is the latest of it. If the
    /// clock falls, the later ones were wrong, and around each, requests were accepted whose claims it has purged.
    static let advance = """
        local function advance(call, at, t, mark)
            if tonumber(mark or '') and not (tonumber(at) > tonumber(mark) and t - tonumber(mark) >= 600) then
                call('HSET', KEYS[1], 'at', t)
                return
            end
            local trail = redis.call('HGET', KEYS[1], 'trail') or ''
            if select(2, string.gsub(trail, ',', '')) >= 63 then trail = string.match(trail, ',(.*)') end
            call('HSET', KEYS[1], 'at', t, 'mark', at, 'trail', trail .. (trail == '' and '' or ',') .. at)
        end

        """

    /// Confirms the epoch of a partition, or begins the next one.
    ///
    /// KEYS: the epoch. ARGV: run id, replication id, evicted keys, id of a new epoch, the node's clock, whether there may have been
    /// claims before (`?`: answer nil if it matters), the replication id that this one continues (or empty), the latest reading of the
    /// server's clock that the node saw and could not record (or empty), the id of the claims' history, `1` if a partition that lacks
    /// it may get it, system and timeline of the node's PostgreSQL (or empty).
    /// Answers the epoch, 0 if the partition lacks the id, or the newest timeline if the node's is older.
    static let beginEpoch = Script(
        advance + """
            local e = redis.call('HMGET', KEYS[1], 'id', 'run', 'rep', 'ev', 'at', 'loss', 'keeper', 'sys', 'tl', 'mark', 'trail')
            local t = tonumber(redis.call('TIME')[1])
            local at, unrecorded = tonumber(e[5] or ''), tonumber(ARGV[8])
            local latest = at and math.max(at, unrecorded or at)
            local isKept = (e[7] or '') == ARGV[9]
            if not isKept and ARGV[10] == '0' then return 0 end
            if isKept and e[8] == ARGV[11] and e[9] and tonumber(e[9]) > (tonumber(ARGV[12]) or 0) then
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
                    if t > at then advance(unrecorded and redis.call or redis.pcall, e[5], t, e[10]) end
                    note()
                    return {e[1], e[6] or ''}
                end
            end
            local kept, earlier, seen = {}, {}, {}
            local function add(list, reading)
                if reading and not seen[reading] then
                    seen[reading] = true
                    list[#list + 1] = reading
                end
            end
            if not e[1] and ARGV[6] == '?' then return false end
            if e[1] or ARGV[6] ~= '0' then
                add(kept, t)
                add(kept, tonumber(ARGV[5]))
                add(kept, at)
                add(kept, unrecorded)
                for reading in string.gmatch(e[6] or '', '%d+') do add(earlier, tonumber(reading)) end
            end
            local right = {}
            for reading in string.gmatch(e[11] or '', '%d+') do
                if tonumber(reading) > t then add(kept, tonumber(reading)) else right[#right + 1] = reading end
            end
            -- The clock did not fall, so the latest reading may be a wrong one too.
            if at and at <= t then right[#right + 1] = e[5] end
            -- Of earlier losses the latest: what a clock that is ahead loses counts for longest.
            table.sort(earlier, function(a, b) return a > b end)
            for i = 1, math.min(#earlier, 128 - #kept) do kept[#kept + 1] = earlier[i] end
            for i = 1, #kept do kept[i] = string.format('%d', kept[i]) end
            local loss = table.concat(kept, ',')
            redis.call('HSET', KEYS[1], 'id', ARGV[4], 'run', ARGV[1], 'rep', ARGV[2], 'ev', ARGV[3], 'at', t, 'loss', loss,
                'keeper', ARGV[9])
            if right[1] then
                redis.call('HSET', KEYS[1], 'mark', right[#right], 'trail', table.concat(right, ',', math.max(1, #right - 63)))
            else
                redis.call('HDEL', KEYS[1], 'mark', 'trail')
            end
            if not isKept then redis.call('HDEL', KEYS[1], 'sys', 'tl') end
            note()
            return {ARGV[4], loss}
            """)

    /// Records the server's clock in an epoch.
    ///
    /// KEYS: the epoch.
    static let recordTime = Script(
        advance + """
            local t = tonumber(redis.call('TIME')[1])
            local e = redis.call('HMGET', KEYS[1], 'at', 'mark')
            local at = tonumber(e[1] or '')
            if at and t > at then advance(redis.call, e[1], t, e[2]) end
            return 1
            """)
}
