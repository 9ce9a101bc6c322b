extension ConformanceScript {
    /// Functions: loading, the limits of libraries and functions, listing, dumps.
    static let functions = #"""
        FUNCTION FLUSH
        FUNCTION LIST
        FUNCTION STATS
        FUNCTION DUMP
        FUNCTION LOAD ""
        FUNCTION LOAD "#"
        FUNCTION LOAD "#!"
        FUNCTION LOAD "return 1"
        FUNCTION LOAD "#!lua\n"
        FUNCTION LOAD "#!lua name=\nreturn 1"
        FUNCTION LOAD "#!lua name=a-b\n"
        FUNCTION LOAD "#!lua name=x y=1\n"
        FUNCTION LOAD "#!js name=x\n"
        FUNCTION LOAD "#!lua name=x name=y\n"
        FUNCTION LOAD "#!lua name=x"
        FUNCTION LOAD "#!lua name=x\n"
        FUNCTION LOAD "#!lua foo=x\n"
        FUNCTION LOAD "#!lua  name=x flags=no-writes\n"
        FUNCTION LOAD "#!LUA name=x\nbad bad"
        FUNCTION LOAD "#! lua name=x\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD "#!\nx"
        FUNCTION LOAD "#!js name=a-b\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD "#!lua NAME=Lib9\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD "#!lua name=lib8\r\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION DELETE LIB9
        FUNCTION DELETE Lib9
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.call('ping')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',1)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function()"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f-1',function() end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('',function() end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function(1,function() end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f'}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{callback=function() end}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,foo=1}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,flags='x'}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,flags={'x'}}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,flags={1}}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,flags={a='no-writes'}}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,description=1}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() end,description={}}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=1}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name={},callback=function() end}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{[1]='f',callback=function() end}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{[true]='f'}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{FUNCTION_NAME='f',CallBack=function() end}"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function() end) redis.register_function('f',function() end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function() end,1)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function(nil,nil)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nx=1"
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal x=y"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.foo()"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.pcall('get','x')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.log(redis.LOG_DEBUG,'x') redis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.sha1hex('x')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.setresp(3)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal t=KEYS"
        FUNCTION LOAD REPLACE "#!lua name=lib\nmath.random()"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.error_reply('x')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal x=cjson.encode({})"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.LOG_DEBUG=1"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.foo=1"
        FUNCTION LOAD REPLACE "#!lua name=lib\nstring.foo=1"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.acl_check_cmd('get')"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('return',function() end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nreturn 5"
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal a = nil .. 1"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',string)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',redis.log)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nsetmetatable(_G,{})"
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal x = #redis redis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD REPLACE "#!lua name=lib\nfor i=1,3 do redis.register_function('f'..i,function() return i end) end"
        FCALL f2 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return 1 end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return {#KEYS,#ARGV} end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return KEYS[1] end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) keys,args=1 end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) local k,a=... return {#k,#a,k[1],a[1]} end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.register_function('x',function() end) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) x=1 end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return x end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) error('boom') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) error({err='X boom'}) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('set','a','b') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('nope') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.pcall('nope') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.sha1hex('') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) redis.setresp(3) return redis.call('get','nokey') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.breakpoint() end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.debug('x') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.replicate_commands() end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.error_reply('X y') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.set_repl(redis.REPL_ALL) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.acl_check_cmd('get') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('eval','return 1',0) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('fcall','f',0) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('function','list') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) redis.log(redis.LOG_DEBUG,'x') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return {err='A b'} end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) local a = nil .. 1 end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return #redis end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return setmetatable({},{}) end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return loadstring('return 1')() end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return string.format('%d',3) .. cjson.encode({1}) .. #_G end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return {map={a=1}} end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) local n=0 n=n+1 return n end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(...) return redis.call('incr','n') end)"
        FCALL f 1 k1 a1 a2
        FCALL_RO f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('f',function(keys,args) return {keys[1],args[1],args[2]} end)"
        FCALL f 1 k1 a1 a2
        FCALL F 1 k1 a1 a2
        FCALL nof 0
        FCALL f x
        FCALL f -1
        FCALL f 3 a
        FCALL nof x
        FCALL f
        FCALL f 99999999999999999999
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal r=redis redis.register_function('f',function(keys,args) return r.call('ping') end)"
        FCALL f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function(keys,args) return redis.pcall('set','a','c') end,flags={'no-writes'},description='d d'}"
        FCALL f 0
        FCALL_RO f 0
        FUNCTION LOAD "#!lua name=lib\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD "#!lua name=lib2\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD "#!lua name=LIB\nredis.register_function('F',function(keys,args) return 1 end)"
        FUNCTION LOAD REPLACE x "#!lua name=lib2\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LOAD FOO "#!lua name=lib2\nredis.register_function('f',function(keys,args) return 1 end)"
        FUNCTION LIST WITHCODE
        FUNCTION LIST LIBRARYNAME LI*
        FUNCTION LIST LIBRARYNAME x*
        FUNCTION LIST LIBRARYNAME
        FUNCTION LIST FOO
        FUNCTION LIST WITHCODE WITHCODE
        FUNCTION LIST LIBRARYNAME a LIBRARYNAME b
        FUNCTION LIST WITHCODE LIBRARYNAME lib
        FUNCTION DUMP
        FUNCTION STATS
        FUNCTION DELETE nolib
        FUNCTION DELETE
        FUNCTION DELETE lib
        FCALL f 0
        FCALL_RO f 0
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0"
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0" REPLACE
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0" APPEND
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0" FLUSH
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0" X
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf0" FLUSH x
        FCALL f 0
        FUNCTION RESTORE x
        FUNCTION RESTORE "\xf5\xc3@Y@c\x1f#!lua name=lib\nredis.register_fu\x06nction{\xc0\x08\x00_`)\x0c'f',callback=\xc0\x1a\x18(keys,args) return 1 end}\n\x00\x8fh\xbe\xda\xff\x1f8\xf"
        FUNCTION RESTORE "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce"
        FUNCTION RESTORE "\n\x00]\x9b\\@\x0f\x7f\xa2\xda" FLUSH
        FUNCTION LIST
        FUNCTION FLUSH x
        FUNCTION FLUSH SYNC x
        FUNCTION KILL
        FUNCTION FLUSH ASYNC
        FUNCTION FLUSH sync
        FUNCTION
        FUNCTION NOPE
        FUNCTION LOAD
        FUNCTION DUMP x
        FUNCTION STATS x
        SCRIPT KILL
        MULTI
        FUNCTION LOAD "#!lua name=lib\nredis.register_function('f',function(keys,args) return 1 end)"
        FCALL f 0
        FUNCTION DUMP
        FCALL_RO f 0
        EXEC
        EVAL "return redis.register_function" 0
        EVAL "return redis.call('fcall','f',0)" 0
        EVAL "return redis.call('function','list')" 0
        COMMAND GETKEYS FCALL f 2 a b c
        COMMAND GETKEYS FCALL_RO f 1 a
        EVAL "return bit.tohex(255,2)" 0
        EVAL "return bit.tohex(255,-4)" 0
        EVAL "local t = {2,3} table.insert(t,1,1) table.insert(t,9,5) return {#t,t[1],t[4] or 'none',table.remove(t,1),#t}" 0
        EVAL "local t={} for i=1,7990 do t[i]='k'..i end return #redis.call('mget',unpack(t))" 0
        EVAL_RO "return redis.call('publish','c','m')" 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f',callback=function() return redis.call('publish','c','m') end,flags={'no-writes'}}"
        FCALL f 0
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal r = redis.register_function redis.register_function('f',function() return r('g',function() end) end)"
        FCALL f 0
        FUNCTION FLUSH
        FLUSHALL
        """#
}
