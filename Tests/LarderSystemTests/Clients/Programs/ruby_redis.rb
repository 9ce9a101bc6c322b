# Tests a Ruby program that uses ruby-redis. Argument: the socket.
require "redis"

def expect(found, wanted)
  raise "found #{found.inspect}, wanted #{wanted.inspect}" unless found == wanted
end

def expect_error(text)
  yield
rescue Redis::CommandError => error
  raise "found #{error.message}, wanted #{text}" unless error.message.start_with?(text)
else
  raise "no error, wanted #{text}"
end

path = ARGV[0]
redis = Redis.new(path: path)
expect(redis.ping, "PONG")

# Values.
bytes = "\0\xff\r\n".b
expect(redis.set("k", bytes), "OK")
expect(redis.get("k").b, bytes)
expect(redis.get("nothing"), nil)
expect(redis.set("k", "other", nx: true), false)
expect(redis.set("k", "other", xx: true, ex: 100), true)
expect([99, 100].include?(redis.ttl("k")), true)
expect(redis.set("k", "newer", get: true, keepttl: true), "other")
expect(redis.persist("k"), true)
expect(redis.ttl("k"), -1)
expect(redis.expire("k", 100, nx: true), true)
expect(redis.expire("k", 50, gt: true), false)
expect(redis.pexpireat("k", 4_102_444_800_000), true)
expect(redis.expiretime("k"), 4_102_444_800)
expect(redis.setex("later", 100, "v"), "OK")
expect(redis.getex("later", persist: true), "v")
expect(redis.getset("later", "w"), "v")
expect(redis.getdel("later"), "w")
expect(redis.incrby("n", 42), 42)
expect(redis.incrbyfloat("n", 0.5), 42.5)
expect_error("ERR value is not an integer or out of range") { redis.incr("n") }
expect(redis.append("n", "!"), 5)
expect(redis.getrange("n", 0, 1), "42")
expect(redis.setrange("n", 0, "17"), 5)
expect(redis.setbit("bits", 7, 1), 0)
expect(redis.bitcount("bits"), 1)
expect(redis.bitpos("bits", 1), 7)
expect(redis.mset("a", "1", "b", "2"), "OK")
expect(redis.mapped_mget("a", "nothing", "b"), { "a" => "1", "nothing" => nil, "b" => "2" })
expect(redis.msetnx("a", "3", "c", "3"), false)
expect(redis.exists("a", "b", "nothing"), 2)
expect(redis.copy("a", "copied"), true)
expect(redis.rename("copied", "z"), "OK")
expect(redis.object("encoding", "z"), "int")
expect(redis.restore("restored", 0, redis.dump("z")), "OK")
expect(redis.type("restored"), "string")
expect(redis.del("z", "restored", "nothing"), 2)
expect_error("ERR unknown command") { redis.call("NOSUCH", "x") }

# Scanning, a pipeline.
expect(redis.pipelined { |pipe| 1000.times { |n| pipe.set("scan:#{n}", n) } }, ["OK"] * 1000)
expect(redis.scan_each(match: "scan:*", count: 17).to_a.uniq.size, 1000)
expect(redis.keys("scan:99*").size, 11)
replies = redis.pipelined do |pipe|
  10_000.times do |n|
    pipe.set("p", n)
    pipe.get("p")
  end
end
expect(replies, (0...10_000).flat_map { |n| ["OK", n.to_s] })

# Transactions.
expect(redis.multi { |t| t.set("t", 1); t.incr("t"); t.get("t") }, ["OK", 2, "2"])
other = Redis.new(path: path)
redis.watch("t") do
  other.set("t", "changed")
  expect(redis.multi { |t| t.set("t", "lost") }, nil)
end
redis.watch("t") { expect(redis.multi { |t| t.set("t", "won") }, ["OK"]) }
expect(other.get("t"), "won")
threads = 4.times.map do
  Thread.new do
    mine = Redis.new(path: path)
    25.times do
      done = nil
      until done
        done = mine.watch("sum") do
          sum = mine.get("sum").to_i
          mine.multi { |t| t.set("sum", sum + 1) }
        end
      end
    end
    mine.close
  end
end
threads.each(&:join)
expect(redis.get("sum"), "100")

# Messages.
heard = []
listener = Thread.new do
  subscriber = Redis.new(path: path)
  subscriber.subscribe("news") do |on|
    on.subscribe { |channel, count| heard << [:subscribe, channel, count] }
    on.message do |channel, message|
      heard << [:message, channel, message]
      subscriber.unsubscribe("news") if message == "last"
    end
  end
end
Thread.pass while redis.publish("news", "first").zero?
expect(redis.pubsub(:channels), ["news"])
expect(redis.pubsub(:numsub, "news", "weather"), ["news", 1, "weather", 0])
redis.publish("news", "last")
listener.join
expect(heard, [[:subscribe, "news", 1], [:message, "news", "first"], [:message, "news", "last"]])

# The server.
expect(redis.info("server")["redis_version"].start_with?("7.0."), true)
expect(redis.config(:get, "maxclients"), { "maxclients" => "10000" })
expect(redis.client(:setname, "ruby"), "OK")
expect(redis.client(:list).map { |each| each["name"] }.include?("ruby"), true)
expect((redis.time[0] - Time.now.to_i).abs < 60, true)
expect(redis.select(1), "OK")
expect(redis.dbsize, 0)
expect(redis.select(0), "OK")
expect(redis.flushall, "OK")
expect(redis.dbsize, 0)
puts "all is well"
