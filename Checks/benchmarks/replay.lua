-- wrk script: thread N sends the requests of the file $TRAFFIC-N, one after another, each once.
local threads = 0
function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

local requests, position = {}, 0
function init(args)
  local file = assert(io.open(os.getenv("TRAFFIC") .. "-" .. number, "rb"))
  for request in file:read("*a"):gmatch("[^\30]+") do requests[#requests + 1] = request end
end

function request()
  position = position + 1
  return requests[position] or requests[#requests]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format("RESULT %.0f %.0f %.0f %d %d\n", summary.requests / summary.duration * 1e6,
    latency:percentile(50), latency:percentile(99), errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
