extension ConformanceScript {
    /// Scripts: conversion of values and errors, allowed and forbidden commands, the Lua library.
    static let scripting = #"""
        FLUSHALL
        SCRIPT FLUSH
        EVAL
        EVAL "return 1"
        EVAL "return 1" a
        EVAL "return 1" -1
        EVAL "return 1" 1
        EVAL "return 1" 3 a
        EVAL "return 1" 0
        EVAL "return" 0
        EVAL "" 0
        EVAL "return foo bar" 0
        EVAL "return 1 return 2" 0
        EVAL "return {1,2,{3,'a'},nil,4}" 0
        EVAL "return {1,'a',3.99,true,false,{ok='fine'},{err='no good'}}" 0
        EVAL "return -3.999" 0
        EVAL "return 1e300" 0
        EVAL "return 0/0" 0
        EVAL "return nil" 0
        EVAL "return true" 0
        EVAL "return false" 0
        EVAL "return {}" 0
        EVAL "return {a=1}" 0
        EVAL "return {nil,1}" 0
        EVAL "return {ok='a\r\nb'}" 0
        EVAL "return {ok=1}" 0
        EVAL "return {err=1}" 0
        EVAL "return {err='x'}" 0
        EVAL "return {err='My error', x=1}" 0
        EVAL "return {double=1.5}" 0
        EVAL "return {double=1e400}" 0
        EVAL "return {big_number='12345678901234567890'}" 0
        EVAL "return {verbatim_string={string='abc',format='txt'}}" 0
        EVAL "return {map={a=1}}" 0
        EVAL "return {set={a=true}}" 0
        EVAL "redis.setresp(3) return {true,false,{map={a=true}}}" 0
        EVAL "redis.setresp(3) return redis.call('get','nothing')" 0
        EVAL "redis.setresp(3) return tostring(redis.call('get','nothing'))" 0
        EVAL "return tostring(redis.call('get','nothing'))" 0
        EVAL "redis.setresp(4)" 0
        EVAL "redis.setresp()" 0
        EVAL "return function() end" 0
        EVAL "return redis.error_reply('foo')" 0
        EVAL "return redis.error_reply('My foo')" 0
        EVAL "return redis.error_reply('-My foo')" 0
        EVAL "return redis.error_reply({})" 0
        EVAL "return redis.status_reply('a b')" 0
        EVAL "return redis.status_reply()" 0
        EVAL "return redis.sha1hex('')" 0
        EVAL "return redis.sha1hex('abc')" 0
        EVAL "return redis.sha1hex()" 0
        EVAL "redis.log('x')" 0
        EVAL "redis.log(9,'x')" 0
        EVAL "redis.log('x','y')" 0
        EVAL "redis.log(redis.LOG_DEBUG,'x')" 0
        EVAL "return redis.set_repl(redis.REPL_ALL)" 0
        EVAL "return redis.set_repl(77)" 0
        EVAL "return redis.replicate_commands()" 0
        EVAL "return {redis.breakpoint(), redis.debug(1)}" 0
        EVAL "return redis.acl_check_cmd('get','a')" 0
        EVAL "return redis.acl_check_cmd('nosuch')" 0
        EVAL "return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING, redis.REPL_NONE}" 0
        EVAL "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2],#KEYS,#ARGV}" 2 a b c d
        EVAL "KEYS[1]='x' return KEYS[1]" 1 a
        EVAL "return redis.call('set',KEYS[1],ARGV[1])" 1 a 1
        EVAL "return redis.call('get',KEYS[1])" 1 a
        EVAL "return redis.call('incr',KEYS[1])" 1 a
        EVAL "return redis.call('set','a',1.5)" 0
        GET a
        EVAL "return redis.call('set','a',10/3)" 0
        GET a
        EVAL "return redis.call('set','a',-0.0)" 0
        GET a
        EVAL "return redis.call('set','a',1e20)" 0
        GET a
        EVAL "return redis.call('set','a',123456789012345678)" 0
        GET a
        EVAL "return redis.call('mget','a','nothing')" 0
        EVAL "return redis.call('set','a','b','zz')" 0
        EVAL "return redis.pcall('set','a','b','zz')" 0
        EVAL "return redis.call('incr','a')" 0
        EVAL "redis.call('set','a','text') return redis.call('incr','a')" 0
        EVAL "redis.call('set','b',1) redis.call('set','a','text') redis.call('incr','a') redis.call('set','b',2)" 0
        MGET a b
        EVAL "redis.call('set','b',1) local e = redis.pcall('incr','a') redis.call('set','b',2) return e" 0
        MGET a b
        EVAL "local e = redis.pcall('incr','a') return e.err" 0
        EVAL "local e = redis.pcall('incr','a') return type(e) .. tostring(e.ok)" 0
        EVAL "return redis.call('nosuch')" 0
        EVAL "return redis.pcall('nosuch')" 0
        EVAL "return redis.call('get')" 0
        EVAL "return redis.call()" 0
        EVAL "return redis.pcall()" 0
        EVAL "return redis.call('get',{})" 0
        EVAL "return redis.call('get',nil)" 0
        EVAL "return redis.call('get',true)" 0
        EVAL "return redis.call('multi')" 0
        EVAL "return redis.call('exec')" 0
        EVAL "return redis.call('watch','a')" 0
        EVAL "return redis.call('subscribe','a')" 0
        EVAL "return redis.call('eval','return 1','0')" 0
        EVAL "return redis.call('script','flush')" 0
        EVAL "return redis.call('auth','x')" 0
        EVAL "return redis.call('hello')" 0
        EVAL "return redis.call('client','id')" 0
        EVAL "return redis.call('config','get','save')" 0
        EVAL "return redis.call('debug','x')" 0
        EVAL "return redis.call('shutdown')" 0
        EVAL "return redis.call('monitor')" 0
        EVAL "return redis.call('ping')" 0
        EVAL "return redis.call('PING','x')" 0
        EVAL "return redis.call('echo','x')" 0
        EVAL "return redis.call('type','a')" 0
        EVAL "return redis.call('exists','a','b','c')" 0
        EVAL "return redis.call('publish','c','m')" 0
        EVAL "return redis.call('select','3')" 0
        EVAL "redis.call('select','3') redis.call('set','x','in 3') return redis.call('get','x')" 0
        GET x
        SELECT 3
        GET x
        SELECT 0
        EVAL "redis.call('mset','p:1','1','p:2','2') return 1" 0
        EVAL "for _,k in ipairs(redis.call('keys','p:*')) do redis.call('del',k) end return redis.call('exists','p:1','p:2')" 0
        EXISTS p:1 p:2
        MSET p:1 1 p:2 2 p:3 3
        EVAL "local k = redis.call('keys',KEYS[1]) return redis.call('del',unpack(k))" 1 p:*
        EVAL "local c, n = '0', 0 repeat local r = redis.call('scan',c,'match','a*') c = r[1] n = n + #r[2] until c == '0' return n" 0
        EVAL "x=1" 0
        EVAL "return x" 0
        EVAL "KEYS=1" 0
        EVAL "string.foo=1" 0
        EVAL "redis.call=nil" 0
        EVAL "rawset(_G,'a',1)" 0
        EVAL "rawset(string,'a',1)" 0
        EVAL "table.insert(string,1)" 0
        EVAL "getmetatable('').__index=nil" 0
        EVAL "print('x')" 0
        EVAL "return os" 0
        EVAL "return io" 0
        EVAL "return require('x')" 0
        EVAL "return dofile" 0
        EVAL "return loadfile" 0
        EVAL "return getfenv" 0
        EVAL "return newproxy" 0
        EVAL "return debug" 0
        EVAL "return package" 0
        EVAL "return rawget(_G,'print')==nil" 0
        EVAL "return rawget(_G,'redis')~=nil" 0
        EVAL "return next(_G)~=nil" 0
        EVAL "for k,v in pairs(string) do if k=='rep' then return 'found' end end" 0
        EVAL "return {type(string),type(redis),type(_G),type(KEYS)}" 0
        EVAL "return _VERSION" 0
        EVAL "error('a')" 0
        EVAL "error('a',0)" 0
        EVAL "error('a',2)" 0
        EVAL "error({err='zz'})" 0
        EVAL "error({err='ERR two words'})" 0
        EVAL "assert(false)" 0
        EVAL "assert(nil,'boo')" 0
        EVAL "local t = nil return t.x" 0
        EVAL "return 1 + {}" 0
        EVAL "\n\nerror('line 3')" 0
        EVAL "return select(2,pcall(function() error('q') end))" 0
        EVAL "return select(2,pcall(function() return redis.call('nosuch') end))" 0
        EVAL "return {pcall(function() return 1,2 end)}" 0
        EVAL "return select(2,xpcall(function() error('q') end, function(e) return e end))" 0
        EVAL "local co=coroutine.wrap(function() return redis.call('get','b') end) return co()" 0
        EVAL "return loadstring('return 1')()" 0
        EVAL "local f,e = loadstring('x x') return e" 0
        EVAL "local f,e = loadstring('x x','=name') return e" 0
        EVAL "return unpack({1,2,3})" 0
        EVAL "return {unpack({1,2,3})}" 0
        EVAL "return {unpack({1,2,3},2)}" 0
        EVAL "return {unpack({1,2,3},3,1)}" 0
        EVAL "return unpack({},1,100000)" 0
        EVAL "local function f() return f() + 1 end return f()" 0
        EVAL "return tostring(1e15)" 0
        EVAL "return string.format('%d %s %5.2f %q','3',true and 'x',2.5,'a')" 0
        EVAL "return {string.find('hello world','o w'),string.match('k=v','(%w+)=(%w+)')}" 0
        EVAL "return (string.gsub('hello','l','L'))" 0
        EVAL "return string.rep('ab',3)" 0
        EVAL "return string.rep()" 0
        EVAL "return string.rep('a',{})" 0
        EVAL "return string.find()" 0
        EVAL "return string.find('a','%')" 0
        EVAL "return string.gsub('a','(','b')" 0
        EVAL "return string.gsub('a','a',function() error('inside') end)" 0
        EVAL "return string.match('a','[a')" 0
        EVAL "return table.insert({},1,2,3)" 0
        EVAL "return table.insert(1,2)" 0
        EVAL "return table.sort({3,1,'a'})" 0
        EVAL "return table.sort({3,1,2},1)" 0
        EVAL "return rawset(1,2,3)" 0
        EVAL "return rawget(1,2)" 0
        EVAL "return next(1)" 0
        EVAL "return pairs(1)" 0
        EVAL "return setmetatable(1,2)" 0
        EVAL "return cjson.encode(function() end)" 0
        EVAL "return cjson.encode({[1]=1,[1000]=2})" 0
        EVAL "return unpack(1)" 0
        EVAL "return loadstring({})" 0
        EVAL "return load(1)" 0
        EVAL "return xpcall(1)" 0
        EVAL "return math.random(1,2,3)" 0
        EVAL "return #string.rep('ab',-1)" 0
        EVAL "local t = {3,1,2} table.sort(t) return t" 0
        EVAL "local t = {3,1,2} table.sort(t,function(a,b) return a > b end) return t" 0
        EVAL "return table.concat({1,2,3},',')" 0
        EVAL "math.randomseed(5) return {math.random(100),math.random(100),math.random(5,9)}" 0
        EVAL "return math.random(0)" 0
        EVAL "return {bit.band(7,3),bit.bor(1,2),bit.bxor(5,1),bit.lshift(1,4),bit.rshift(256,4)}" 0
        EVAL "return bit.tohex(255)" 0
        EVAL "return cjson.encode({1,2,{a=cjson.null}})" 0
        EVAL "return cjson.decode('{\"a\":[1,2,{\"b\":\"c\"}]}').a[3].b" 0
        EVAL "return cjson.decode('{')" 0
        EVAL "return {1, cjson.decode('[1,2]')[2], cjson.null}" 0
        EVAL "#!lua\nreturn 1" 0
        EVAL "#!lua flags=no-writes\nreturn redis.call('get','a')" 0
        EVAL "#!lua flags=no-writes\nreturn redis.call('set','a','b')" 0
        EVAL "#!lua flags=no-writes,allow-oom,allow-stale,no-cluster\nreturn 1" 0
        EVAL "#!lua flags=foo\nreturn 1" 0
        EVAL "#!lua name=foo\nreturn 1" 0
        EVAL "#!python\nreturn 1" 0
        EVAL "#!lua" 0
        EVAL "#!lua\nerror('line 2')" 0
        EVAL_RO "return redis.call('get','a')" 0
        EVAL_RO "return redis.call('set','a','b')" 0
        EVAL_RO "return redis.pcall('set','a','b')" 0
        EVAL_RO "#!lua\nreturn 1" 0
        EVAL_RO "#!lua flags=no-writes\nreturn 1" 0
        SCRIPT LOAD "return redis.call('get',KEYS[1])"
        EVALSHA 4e6d8fc8bb01276962cce5371fa795a7763657ae 1 a
        EVALSHA 4E6D8FC8BB01276962CCE5371FA795A7763657AE 1 a
        EVALSHA_RO 4e6d8fc8bb01276962cce5371fa795a7763657ae 1 a
        SCRIPT EXISTS 4e6d8fc8bb01276962cce5371fa795a7763657ae ffffffffffffffffffffffffffffffffffffffff x
        EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
        EVALSHA x 0
        EVALSHA x y
        EVALSHA x
        EVALSHA 4e6d8fc8bb01276962cce5371fa795a7763657ae x
        SCRIPT LOAD "return foo bar"
        SCRIPT LOAD
        SCRIPT FLUSH foo
        SCRIPT FLUSH ASYNC
        SCRIPT EXISTS 4e6d8fc8bb01276962cce5371fa795a7763657ae
        SCRIPT FLUSH SYNC
        SCRIPT KILL
        SCRIPT foo
        SCRIPT
        MULTI
        EVAL "return redis.call('set',KEYS[1],ARGV[1])" 1 a 5
        EVAL "return redis.call('incr',KEYS[1])" 1 a
        EVAL "error('no')" 0
        EVAL "return redis.call('incr','undeclared')" 0
        SCRIPT LOAD "return 7"
        EVALSHA 8ba7d18df9a9fb0d1ed8f5b0c5bc2b2f5bd7d5b7 0
        EXEC
        GET a
        GET undeclared
        EVAL "return {redis.call('set',KEYS[1],'v','PX',100000),redis.call('pttl',KEYS[1])>90000,redis.call('ttl',KEYS[1])}" 1 lock
        EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 lock w
        EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end" 1 lock v 200000
        EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 lock v
        EXISTS lock
        EVAL "local c = redis.call('incrby',KEYS[1],ARGV[1]) if c == tonumber(ARGV[1]) then redis.call('expire',KEYS[1],ARGV[2]) end return c" 1 limit 1 60
        EVAL "local c = redis.call('incrby',KEYS[1],ARGV[1]) if c == tonumber(ARGV[1]) then redis.call('expire',KEYS[1],ARGV[2]) end return c" 1 limit 1 60
        TTL limit
        COMMAND GETKEYS EVAL "return 1" 2 a b c
        COMMAND GETKEYSANDFLAGS EVAL "return 1" 2 a b c
        COMMAND GETKEYS EVAL "return 1" 0
        FLUSHALL
        """#
}
