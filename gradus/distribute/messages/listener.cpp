#include "gradus/distribute/messages/listener.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/no_signals.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;

constexpr int backlog = 1024;
constexpr std::chrono::milliseconds pause_without_descriptors{50};

std::string reason(int problem) {
  return problem == EADDRINUSE ? "another process listens there" : std::generic_category().message(problem);
}

/// "address port", alike for a socket and for gRPC's text; a v4 address within v6 is one of v4.
std::string key_of(const sockaddr_storage& peer) {
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, written.data(), written.size());
    return text(written.data(), ' ', ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], written.data(), written.size());
  else inet_ntop(AF_INET6, &v6.sin6_addr, written.data(), written.size());
  return text(written.data(), ' ', ntohs(v6.sin6_port));
}

/// Parses "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711" or "ipv6:[::1]:4711"; a scope may follow the address.
std::string key_of(std::string_view peer) {
  const std::size_t family = peer.find(':'), colon = peer.rfind(':');
  if (family == std::string_view::npos || colon <= family) return {};
  std::string_view host = peer.substr(family + 1, colon - family - 1);
  for (const std::string_view begin : {"%5B", "["})
    if (host.starts_with(begin)) host.remove_prefix(begin.size());
  for (const std::string_view end : {"%5D", "]"})
    if (host.ends_with(end)) host.remove_suffix(end.size());
  host = host.substr(0, host.find('%'));
  return text(host, ' ', peer.substr(colon + 1));
}

/// A listening socket, or the negative error number.
int listening_at(const addrinfo& where, int port, bool takes_v4) {
  const int opened = socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (opened < 0) return -errno;
  const int yes = 1, only_v6 = takes_v4 ? 0 : 1;
  setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // otherwise the port stays taken after its server
  if (where.ai_family == AF_INET6) setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
  sockaddr_storage address{};
  std::copy_n(reinterpret_cast<const char*>(where.ai_addr), where.ai_addrlen, reinterpret_cast<char*>(&address));
  auto& number = where.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port;
  number = htons(static_cast<std::uint16_t>(port));
  if (bind(opened, reinterpret_cast<const sockaddr*>(&address), where.ai_addrlen) == 0 && listen(opened, backlog) == 0)
    return opened;
  const int problem = errno;
  close(opened);
  return -problem;
}

int port_of(int listening) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  getsockname(listening, reinterpret_cast<sockaddr*>(&own), &size);
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Found addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.c_str(), "0", &wanted, &found);
  require<Unavailable>(problem == 0, "its host is not known: ", gai_strerror(problem));
  return {found, &freeaddrinfo};
}

bool is_end(short events) { return (events & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL)) != 0; }

}  // namespace

std::size_t raise_descriptor_limit() {
  constexpr rlim_t wanted = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlimit raised = limit;
  raised.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, wanted));
  if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) != 0) raised = limit;
  return static_cast<std::size_t>(std::min(raised.rlim_cur, wanted));
}

std::size_t Listener::most_unproven(std::size_t descriptors) {
  return std::clamp<std::size_t>(descriptors / 16, 4, 128);  // each needs two
}

Listener::Listener(const Address& where) : most_(most_unproven(raise_descriptor_limit())) {
  const bool is_everywhere = where.host == "0.0.0.0";
  port_ = where.port;
  int problem = EADDRNOTAVAIL;
  const auto listen_at = [&](const std::string& host, bool takes_v4) {
    const Found found = addresses_of(host);
    for (const addrinfo* each = found.get(); each != nullptr && problem != EADDRINUSE; each = each->ai_next) {
      if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
      const int opened = listening_at(*each, port_, takes_v4);
      if (opened < 0) problem = -opened;  // some of several addresses may not belong to this machine
      else listening_.push_back(opened), port_ = port_of(opened);
    }
  };
  if (is_everywhere) {
    try {
      listen_at("::", true);
    } catch (const Unavailable&) {}  // a machine without IPv6
  }
  if (listening_.empty() && problem != EADDRINUSE) listen_at(where.host, false);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!listening_.empty() && problem != EADDRINUSE && wake_ >= 0) return;
  if (wake_ < 0) problem = errno;
  stop();
  throw Unavailable(reason(problem));
}

Listener::~Listener() { stop(); }

void Listener::start(Uses uses) {
  uses_ = std::move(uses);
  const NoSignals quiet;
  thread_ = std::thread([this] { run(); });
}

void Listener::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
    thread_.join();
  }
  for (const int each : std::exchange(listening_, {})) close(each);
  if (wake_ >= 0) close(std::exchange(wake_, -1));
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, each] : std::exchange(waiting_, {})) close(each.descriptor);  // its connection stays
}

std::size_t Listener::unproven() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Listener::prove(std::string_view peer) {
  const std::string key = key_of(peer);
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  close(found->second.descriptor);
  waiting_.erase(found);
}

void Listener::run() {
  for (;;) {
    std::vector<pollfd> awaited{{wake_, POLLIN, 0}};
    std::vector<std::string> peers;
    int wait = -1;
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
      for (const auto& [peer, each] : waiting_)
        awaited.push_back({each.descriptor, POLLRDHUP, 0}), peers.push_back(peer);
      wait = milliseconds_to_wait();
    }
    const bool accepts = Clock::now() >= pauses_until_;
    if (accepts)
      for (const int each : listening_) awaited.push_back({each, POLLIN, 0});
    if (poll(awaited.data(), awaited.size(), wait) < 0 && errno != EINTR)
      std::this_thread::sleep_for(pause_without_descriptors);  // without memory
    std::vector<std::string> ended;
    for (std::size_t i = 0; i < peers.size(); ++i)
      if (is_end(awaited[i + 1].revents)) ended.push_back(peers[i]);
    drop_ended(ended);
    for (std::size_t i = peers.size() + 1; i < awaited.size(); ++i)
      if (awaited[i].revents != 0) accept_from(awaited[i].fd);
  }
}

/// Milliseconds until the next work that no event announces; -1: none. Under the lock.
int Listener::milliseconds_to_wait() {
  auto until = Clock::time_point::max();
  if (const auto first = oldest(); first != waiting_.end()) until = first->second.since + patience;
  if (pauses_until_ > Clock::now()) until = std::min(until, pauses_until_);
  if (until == Clock::time_point::max()) return -1;
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count()));
}

Listener::Waiting::iterator Listener::oldest() {
  return std::ranges::min_element(waiting_, {}, [](const auto& each) { return each.second.since; });
}

void Listener::drop(Waiting::iterator connection) {
  shutdown(connection->second.descriptor, SHUT_RDWR);  // the owner of the connection sees its end
  close(connection->second.descriptor);
  waiting_.erase(connection);
}

void Listener::drop_ended(const std::vector<std::string>& ended) {
  const std::lock_guard lock(mutex_);
  for (const std::string& peer : ended)
    if (const auto found = waiting_.find(peer); found != waiting_.end()) drop(found);
  for (auto first = oldest(); first != waiting_.end() && Clock::now() - first->second.since >= patience;
       first = oldest())
    drop(first);
}

bool Listener::make_room() {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < most_) return true;
  const auto first = oldest();
  if (const auto until = first->second.since + grace; Clock::now() < until) {
    pauses_until_ = until;  // the others wait in the system's queue
    return false;
  }
  drop(first);
  return true;
}

void Listener::accept_from(int listening) {
  while (make_room()) {
    const int accepted = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) add(accepted);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return on_exhaustion();
    else if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Listener::add(int accepted) {
  const int yes = 1;
  setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const int second = fcntl(accepted, F_DUPFD_CLOEXEC, 0);
  if (second < 0 || getpeername(accepted, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    const bool is_exhausted = second < 0;
    if (second >= 0) close(second);
    close(accepted);
    if (is_exhausted) on_exhaustion();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    const std::string key = key_of(peer);
    if (const auto before = waiting_.find(key); before != waiting_.end()) drop(before);  // it has ended
    waiting_.emplace(key, Unproven{second, Clock::now()});
  }
  uses_.take(accepted);
}

/// Drops connections that have not proven themselves in time; if all have, a new connection waits until one ends.
void Listener::on_exhaustion() {
  pauses_until_ = Clock::now() + pause_without_descriptors;
  bool tells = false;
  {
    const std::lock_guard lock(mutex_);
    while (!waiting_.empty() && Clock::now() - oldest()->second.since >= grace) drop(oldest());
    tells = !std::exchange(has_told_, true);
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (tells)
    uses_.tell(text("a connection cannot be taken: this process has no descriptors left, of ", limit.rlim_cur,
                    ": ranks wait outside; raise its limit (ulimit -n)"));
}

}  // namespace gradus
