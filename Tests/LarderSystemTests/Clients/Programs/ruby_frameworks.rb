# Rails' cache, a rate limit with rack-attack, and the scripts of redlock, in Debian's versions. Argument: the socket.
require "active_support"
require "active_support/cache/redis_cache_store"
require "active_support/core_ext/numeric/time"
require "rack"
require "rack/attack"
require "rack/mock"
require "securerandom"

def expect(found, wanted)
  raise "found #{found.inspect}, wanted #{wanted.inspect}" unless found == wanted
end

def expect_in(found, wanted)
  raise "found #{found.inspect}, wanted one of #{wanted.inspect}" unless wanted.include?(found)
end

path = ARGV[0]
redis = Redis.new(path: path)
# Raise errors in the handler, because Rails' cache treats errors as misses.
store = ActiveSupport::Cache::RedisCacheStore.new(
  redis: -> { Redis.new(path: path) }, namespace: "rails", expires_in: 300,
  error_handler: ->(method:, returning:, exception:) { raise exception }
)

# Rails' cache.
expect(store.write("model", { title: "一本书" }), "OK")
expect(store.read("model"), { title: "一本书" })
expect_in(redis.ttl("rails:model"), [299, 300])
expect(store.write("model", 1, unless_exist: true), false)
expect([store.fetch("made") { "computed" }, store.fetch("made") { "again" }], %w[computed computed])
store.write_multi({ "a" => 1, "b" => 2 }, expires_in: 60)
expect(store.read_multi("a", "nothing", "b"), { "a" => 1, "b" => 2 })
expect(store.fetch_multi("a", "c") { |name| name * 2 }, { "a" => 1, "c" => "cc" })
expect([store.increment("n", 5), store.decrement("n")], [5, 4])
expect_in(redis.ttl("rails:n"), [299, 300])
store.delete("a")
expect(store.exist?("a"), false)
store.delete_matched("?")
expect(redis.keys("rails:?"), [])

# A rate limit.
Rack::Attack.cache.store = store
Rack::Attack.throttle("requests by ip", limit: 3, period: 1.hour, &:ip)
app = Rack::MockRequest.new(Rack::Attack.new(->(_) { [200, {}, ["page"]] }))
expect((1..5).map { app.get("/", "REMOTE_ADDR" => "1.2.3.4").status }, [200, 200, 200, 429, 429])
expect(app.get("/", "REMOTE_ADDR" => "1.2.3.5").status, 200)
store.clear
expect(redis.keys("rails:*"), [])

# Redlock with one server: its scripts are loaded once, and called by their digests.
class Lock
  TAKE = <<~LUA
    local held = redis.call("get", KEYS[1])
    if held == ARGV[1] or (not held and ARGV[3] == "yes") then
      return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
    end
  LUA
  RELEASE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0'
  LEFT = 'return { redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1]) }'

  def initialize(redis, name)
    @redis, @name, @token = redis, name, SecureRandom.uuid
  end

  attr_reader :token

  def take(milliseconds, anew: true)
    run(TAKE, @token, milliseconds, anew ? "yes" : "no") == "OK"
  end

  def release
    run(RELEASE, @token) == 1
  end

  def left
    run(LEFT)
  end

  private

  def run(script, *arguments)
    @redis.evalsha(Digest::SHA1.hexdigest(script), [@name], arguments)
  rescue Redis::CommandError => error
    raise unless error.message.start_with?("NOSCRIPT")

    @redis.script(:load, script)
    retry
  end
end

mine, other = Lock.new(redis, "lock"), Lock.new(Redis.new(path: path), "lock")
expect([mine.take(100_000), other.take(100_000)], [true, false])
token, left = mine.left
expect(token, mine.token)
expect(left.between?(1, 100_000), true)
expect(other.release, false)
expect(mine.take(200_000, anew: false), true)
expect_in(redis.ttl("lock"), [199, 200])
expect([mine.release, mine.release, mine.take(100, anew: false)], [true, false, false])
expect(mine.left, [nil, -2])
sum = 0
threads = 4.times.map do
  Thread.new do
    lock = Lock.new(Redis.new(path: path), "sum")
    10.times do
      Thread.pass until lock.take(100_000)
      before = sum
      redis.ping
      sum = before + 1
      expect(lock.release, true)
    end
  end
end
threads.each(&:join)
expect(sum, 40)
expect(redis.flushall, "OK")
puts "all is well"
