# Tests a Perl program that uses the module Redis. Argument: the socket.
use strict;
use warnings;
use Redis;

sub shown { my ($value) = @_; return defined $value ? "'$value'" : 'undef' }

sub expect {
    my ($found, $wanted) = @_;
    return if !defined $found && !defined $wanted;
    return if defined $found && defined $wanted && $found eq $wanted;
    die 'found ' . shown($found) . ', wanted ' . shown($wanted) . ' at line ' . (caller)[2] . "\n";
}

sub expect_list {
    my ($found, @wanted) = @_;
    @_ = (join(' ', map { shown($_) } @$found), join(' ', map { shown($_) } @wanted));
    goto &expect;
}

sub expect_error {
    my ($text, $work) = @_;
    my $ended = eval { $work->(); 1 };
    die "no error, wanted $text\n" if $ended;
    die "found $@, wanted $text\n" if index($@, $text) < 0;
    return;
}

my $path = shift @ARGV;
my $redis = Redis->new(sock => $path);
expect($redis->ping, 'PONG');

# Values.
expect($redis->set('k', "\0\xff\r\n"), 'OK');
expect($redis->get('k'), "\0\xff\r\n");
expect($redis->get('nothing'), undef);
expect($redis->set('k', 'other', 'NX'), undef);
expect($redis->set('k', 'other', 'XX', 'EX', 100), 'OK');
my $ttl = $redis->ttl('k');
expect($ttl == 99 || $ttl == 100, 1);
expect($redis->persist('k'), 1);
expect($redis->ttl('k'), -1);
expect($redis->incrby('n', 42), 42);
expect($redis->incrbyfloat('n', '0.5'), '42.5');
expect_error('ERR value is not an integer or out of range', sub { $redis->incr('n') });
expect($redis->append('n', '!'), 5);
expect($redis->getrange('n', 0, 1), '42');
expect($redis->setrange('n', 0, '17'), 5);
expect($redis->setbit('bits', 7, 1), 0);
expect($redis->bitcount('bits'), 1);
expect($redis->mset('a', '1', 'b', '2'), 'OK');
expect_list([$redis->mget('a', 'nothing', 'b')], '1', undef, '2');
expect($redis->exists('a'), 1);
expect($redis->rename('a', 'z'), 'OK');
expect($redis->type('z'), 'string');
expect($redis->del('z', 'b', 'nothing'), 2);
expect_error('unknown command', sub { $redis->nosuch('x') });

# Scanning, and a pipeline, whose replies are passed to callbacks.
my $stored = 0;
for my $number (0 .. 999) {
    $redis->set("scan:$number", $number, sub { my ($reply, $error) = @_; $stored++ if $reply eq 'OK' });
}
$redis->wait_all_responses;
expect($stored, 1000);
my ($cursor, %found) = (0);
do {
    my ($next, $keys) = @{ $redis->scan($cursor, 'MATCH', 'scan:*', 'COUNT', 17) };
    $found{$_} = 1 for @$keys;
    $cursor = $next;
} while ($cursor);
expect(scalar(keys %found), 1000);
expect(scalar(() = $redis->keys('scan:99*')), 11);

# Transactions.
$redis->multi;
expect($redis->set('t', 1), 'QUEUED');
expect($redis->incr('t'), 'QUEUED');
expect_list([$redis->exec], 'OK', 2);
my $other = Redis->new(sock => $path);
expect($redis->watch('t'), 'OK');
expect($other->set('t', 'changed'), 'OK');
$redis->multi;
$redis->set('t', 'lost');
expect(scalar($redis->exec), undef);
$redis->multi;
$redis->set('t', 'dropped');
expect($redis->discard, 'OK');
expect($other->get('t'), 'changed');

# Messages.
my @heard;
my $subscriber = Redis->new(sock => $path);
$subscriber->subscribe('news', sub { my ($message, $topic, $name) = @_; push @heard, "$topic $name $message" });
$subscriber->psubscribe('n*', sub { my ($message, $topic, $name) = @_; push @heard, "$topic $name $message" });
expect($redis->publish('news', 'first'), 2);
expect($redis->publish('weather', 'nobody hears'), 0);
$subscriber->wait_for_messages(0.05) while @heard < 2;
@heard = sort @heard;
expect_list(\@heard, 'news n* first', 'news news first');

# The server.
expect(scalar($redis->info->{redis_version} =~ /^7[.]0[.]/), 1);
expect_list([$redis->config_get('maxclients')], 'maxclients', '10000');
expect($redis->client_setname('perl'), 'OK');
expect($redis->client_getname, 'perl');
expect(abs(($redis->time)[0] - time) < 60, 1);
expect($redis->select(1), 'OK');
expect($redis->dbsize, 0);
expect($redis->select(0), 'OK');
expect($redis->flushall, 'OK');
expect($redis->dbsize, 0);
expect($redis->quit, 1);
print "all is well\n";
