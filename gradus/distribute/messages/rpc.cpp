#include "gradus/distribute/messages/rpc.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "gradus/base/lived_time.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/distribute/messages/component.h"
#include "gradus/distribute/messages/grpc_component.h"
#include "gradus/distribute/messages/left_token.h"
#include "gradus/distribute/messages/listener.h"

namespace gradus {
namespace {

const GrpcTable& grpc_functions() {
  static const GrpcTable& table = table_of<GrpcTable>(
      {"gradus_grpc", "gradus_grpc", "the meeting of processes by gRPC", "libgrpc++-dev", "libgrpc++1.51"});
  return table;
}

/// The texts of certificates, as long as they are needed.
struct Texts {
  std::string token, certificate, key, authority;

  explicit Texts(const Credentials& given) : token(given.token) {
    if (!given.has_tls()) return;
    const auto read = [](const std::string& file, std::string_view field) {
      try {
        return read_text_file(file);
      } catch (const Error& error) { throw InvalidArgument(text("Cluster: `", field, "`: ", error.what())); }
    };
    certificate = read(given.certificate, "certificate");
    key = read(given.key, "key");
    authority = read(given.authority, "authority");
  }
  GrpcCredentials pointers() const {
    const auto pointer = [](const std::string& each) { return each.empty() ? nullptr : each.c_str(); };
    return {pointer(token), pointer(certificate), pointer(key), pointer(authority)};
  }
};

/// The interfaces of this machine, each once an address.
std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> listed_interfaces() {
  ifaddrs* all = nullptr;
  require<Unavailable>(getifaddrs(&all) == 0, "the interfaces of this machine cannot be listed");
  return {all, &freeifaddrs};
}

/// The first address of an interface, one of IPv4 where it has some.
std::string address_of_interface(const std::string& name) {
  const auto all = listed_interfaces();
  std::string found, others;
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> written{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, written.data(), written.size());
    if (name == each->ifa_name && found.empty()) found = written.data();
    others += std::string(others.empty() ? "" : ", ") + each->ifa_name + " (" + written.data() + ")";
  }
  require(!found.empty(), "Cluster: `interface` is ", name, ", which has no address of IPv4 here; there are ", others);
  return found;
}

class GrpcServer : public RpcServer {
 public:
  GrpcServer(const Address& where, const std::string& interface, Credentials credentials, RpcHandler& handler,
             const std::string& problem)
      : grpc_(grpc_functions()), handler_(handler), handshakes_(where.to_string()) {
    const bool is_of_machine = needs_left_token(where, credentials);
    Address listens = where;
    if (!interface.empty()) listens.host = address_of_interface(interface);
    else if (!where.is_loopback() && where.port != 0) listens.host = "0.0.0.0";
    if (is_of_machine) credentials.token = token_of_process(where.port);
    const Texts texts(credentials);
    try {
      listener_ = std::make_unique<Listener>(listens);
    } catch (const Unavailable& error) {
      throw Unavailable(text(problem, " at ", listens.to_string(), ": ", error.what()));
    }
    // The port is this server's from here on; early clients wait until start().
    if (is_of_machine) left_token_ = std::make_unique<LeftToken>(Address{where.host, port()}, credentials.token);
    const GrpcServerSettings settings = {texts.pointers(), most_bytes_asked, this, &asked, &left, &proven,
                                         &refused,         &handshake_failed};
    std::array<char, 512> why{};
    const NoSignals quiet;
    server_ = grpc_.serve(&settings, why.data(), why.size());
    require<Unavailable>(server_ != nullptr, problem, " at ", listens.to_string(), ": ", why.data());
    const auto tell = [at = listens.to_string()](const std::string& told) {
      notice(text("gradus: ", at, ": ", told, "\n"));
    };
    try {
      listener_->start({[this](int accepted) { grpc_.take(server_, accepted); }, tell});
    } catch (const std::exception& error) {  // no thread can be started
      grpc_.stop(server_, 0);
      throw Unavailable(text(problem, " at ", listens.to_string(), ": ", error.what()));
    }
  }
  ~GrpcServer() override { stop(std::chrono::milliseconds(0)); }

  int port() const override { return listener_->port(); }

  void stop(std::chrono::milliseconds patience) override {
    if (server_ == nullptr || std::exchange(is_stopped_, true)) return;
    const NoSignals quiet;
    left_token_.reset();
    listener_->stop();
    grpc_.stop(server_, static_cast<int>(patience.count()));
  }

 private:
  static void asked(void* owner, std::uint64_t call, const char* bytes, std::size_t size, const char*) {
    auto& self = *static_cast<GrpcServer*>(owner);
    self.handler_.ask(call, {bytes, size}, [server = self.server_, &grpc = self.grpc_, call](std::string_view answer) {
      grpc.answer(server, call, answer.data(), answer.size());
    });
  }
  static void left(void* owner, std::uint64_t call) { static_cast<GrpcServer*>(owner)->handler_.left(call); }
  static void proven(void* owner, const char* peer) { static_cast<GrpcServer*>(owner)->listener_->prove(peer); }
  static void refused(void* owner, const char* peer) { static_cast<GrpcServer*>(owner)->handler_.refused(peer); }
  static void handshake_failed(void* owner, const char* why) {
    if (const std::string line = static_cast<GrpcServer*>(owner)->handshakes_.line(why); !line.empty()) notice(line);
  }

  const GrpcTable& grpc_;
  RpcHandler& handler_;
  FailedHandshakes handshakes_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<LeftToken> left_token_;
  void* server_ = nullptr;  // stays as it is for questions that come while it stops
  bool is_stopped_ = false;
};

class GrpcClient : public RpcClient {
 public:
  GrpcClient(const Address& where, const Credentials& credentials, const std::string& what)
      : grpc_(grpc_functions()), where_(where.to_string()), what_(what), credentials_(credentials) {
    const Texts texts(credentials);
    const GrpcClientSettings settings = {where_.c_str(), texts.pointers(), most_bytes_answered};
    const NoSignals quiet;
    client_ = grpc_.connect(&settings);
  }
  ~GrpcClient() override {
    cancel();
    grpc_.disconnect(client_);
  }

  std::optional<std::string> ask(std::string_view bytes, Deadline deadline, bool awaits) override {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {};
    std::string answer;
    std::array<char, 512> why{};
    const auto take = [](void* into, const char* got, std::size_t size) {
      static_cast<std::string*>(into)->assign(got, size);
    };
    const NoSignals quiet;
    const GrpcResult result = grpc_.ask(client_, bytes.data(), bytes.size(), static_cast<int>(left.count()), awaits,
                                        &answer, take, why.data(), why.size());
    switch (result) {
      case GrpcResult::answered: set_problem({}); return answer;
      case GrpcResult::late: set_problem({}); return {};
      case GrpcResult::unconnected:
        require<LeftOff>(!is_cancelled_, what_, " at ", where_, " was left");
        if (why[0] != 0) note(why.data());  // else the reason known before is still the best one
        return {};
      case GrpcResult::refused:
        throw TurnedAway(text(what_, " at ", where_, " turns this process away: ", why.data(),
                              ": GRADUS_TOKEN has to be the same on all ranks"));
      case GrpcResult::unreachable:
      case GrpcResult::failed: break;
    }
    require<LeftOff>(!is_cancelled_, what_, " at ", where_, " was left");
    throw Unavailable(text(what_, " at ", where_, " does not answer: ", why.data()));
  }

  void cancel() override {
    is_cancelled_ = true;
    grpc_.cancel(client_);
  }

  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  /// `why`: gRPC's reason for the lack of a connection.
  void note(std::string_view why) {
    constexpr std::string_view before = "last error: ";
    if (const auto at = why.find(before); at != std::string_view::npos) why.remove_prefix(at + before.size());
    if (const auto at = why.find(": ipv"); at != std::string_view::npos) why.remove_prefix(at + 2);  // the status
    const bool is_closed = why.find("Socket closed") != std::string_view::npos;
    const bool is_of_tls = is_closed || why.find("andshake") != std::string_view::npos ||
                           why.find("certificate") != std::string_view::npos;
    std::string told = printable(why, true);
    if (credentials_.has_tls() && is_of_tls)
      told += text(": the TLS handshake has failed: both sides need certificates of one authority, which name the ",
                   "address at which they are asked; this process has the certificate ", credentials_.certificate,
                   ", the key ", credentials_.key, " and the authority ", credentials_.authority);
    else if (is_closed)
      told +=
          ": it may ask for certificates (set GRADUS_CERTIFICATE, GRADUS_KEY and GRADUS_AUTHORITY on all ranks, or "
          "none), or no process listens on this port yet";
    set_problem(std::move(told));
  }
  void set_problem(std::string told) {
    const std::lock_guard lock(mutex_);
    problem_ = std::move(told);
  }

  const GrpcTable& grpc_;
  const std::string where_, what_;
  const Credentials credentials_;
  mutable std::mutex mutex_;
  std::string problem_;
  std::atomic<bool> is_cancelled_ = false;
  void* client_ = nullptr;
};

class InProcessClient : public RpcClient {
 public:
  explicit InProcessClient(RpcHandler& handler) : handler_(handler) {}

  std::optional<std::string> ask(std::string_view bytes, Deadline deadline, bool) override {
    static std::atomic<std::uint64_t> last = std::uint64_t{1} << 63;  // apart from the numbers of gRPC's
    const std::uint64_t call = ++last;
    const auto waiting = std::make_shared<Waiting>();  // the answer may come after this has gone
    {
      const std::lock_guard lock(mutex_);
      require<LeftOff>(!is_cancelled_, "the meeting was left");
      std::erase_if(under_way_, [](const auto& each) { return each.expired(); });
      under_way_.push_back(waiting);
    }
    handler_.ask(call, bytes, [waiting](std::string_view answer) { waiting->end(std::string(answer)); });
    std::unique_lock lock(waiting->mutex);
    LivedDeadline lived(deadline);
    while (!waiting->is_done && !lived.has_passed())
      waiting->changed.wait_until(lock, lived.next(), [&] { return waiting->is_done; });
    if (waiting->is_done) {
      require<LeftOff>(waiting->answer.has_value(), "the meeting was left");
      return waiting->answer;
    }
    lock.unlock();
    handler_.left(call);
    return {};
  }

  void cancel() override {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& each : under_way_)
      if (const auto waiting = each.lock()) waiting->end({});
  }

 private:
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::string> answer;
    bool is_done = false;
    void end(std::optional<std::string> given) {
      const std::lock_guard lock(mutex);
      if (is_done) return;
      answer = std::move(given);
      is_done = true;
      changed.notify_all();
    }
  };
  RpcHandler& handler_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Waiting>> under_way_;
  bool is_cancelled_ = false;
};

}  // namespace

std::unique_ptr<RpcServer> grpc_server(const Address& where, const std::string& interface,
                                       const Credentials& credentials, RpcHandler& handler,
                                       const std::string& problem) {
  return std::make_unique<GrpcServer>(where, interface, credentials, handler, problem);
}

std::string RefusedQuestions::line(std::string_view who, std::string_view peer) {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = ++counts_[std::string(who)];
  }
  if (count > always_told && !std::has_single_bit(count)) return {};
  return text("gradus: ", who, " has turned ", printable(peer, true), " away: it has another token, or none",
              count > always_told ? text("; it was asked so ", count, " times") : "", "\n");
}

void notice_turned_away(std::string_view who, std::string_view peer) {
  static auto* const refused = new RefusedQuestions;  // servers may stop as the process ends
  if (const std::string line = refused->line(who, peer); !line.empty()) notice(line);
}

std::string FailedHandshakes::line(std::string_view why) {
  const std::string reason = printable(why, true);
  {
    const std::lock_guard lock(mutex_);
    if (told_.size() == most_reasons || std::ranges::find(told_, reason) != told_.end()) return {};
    told_.push_back(reason);
  }
  const bool is_of_certificates =
      reason.find("certificate") != std::string::npos || reason.find("SSL_ERROR") != std::string::npos;
  if (!is_of_certificates)
    return text("gradus: a connection to ", where_, " has ended in the TLS handshake: ", reason, "\n");
  return text("gradus: a caller was turned away at ", where_, ": the TLS handshake has failed: ", reason,
              ": it has no certificate of this `authority`, or does not take this one\n");
}

std::string interface_of(const std::string& host) { return interface_of(host, listed_interfaces().get()); }

std::string interface_of(const std::string& host, const ifaddrs* among) {
  for (const ifaddrs* each = among; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> written{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(each->ifa_addr, size, written.data(), written.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string name = each->ifa_name;
    if (host == written.data()) return name.substr(0, name.find(':'));  // without the label of a second address
  }
  return {};
}

std::string own_host(const Address& meeting, const std::string& interface) {
  if (!interface.empty()) return address_of_interface(interface);
  if (meeting.is_loopback()) return meeting.host;
  addrinfo* found = nullptr;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  const int problem = getaddrinfo(meeting.host.c_str(), std::to_string(meeting.port).c_str(), &wanted, &found);
  require<Unavailable>(problem == 0, "the host of ", meeting.to_string(), " is not known: ", gai_strerror(problem));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    // Nothing is sent: the kernel only chooses the way.
    const int opened = socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (opened < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    std::array<char, NI_MAXHOST> written{};
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    const bool is_known = connect(opened, each->ai_addr, each->ai_addrlen) == 0 &&
                          getsockname(opened, address, &size) == 0 &&
                          getnameinfo(address, size, written.data(), written.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    close(opened);
    if (is_known) return written.data();
  }
  throw Unavailable(text("no interface of this machine leads to ", meeting.to_string()));
}

std::unique_ptr<RpcClient> grpc_client(const Address& where, const Credentials& credentials, const std::string& what) {
  if (!needs_left_token(where, credentials)) return std::make_unique<GrpcClient>(where, credentials, what);
  grpc_functions();  // missing functions are reported now
  return client_with_left_token(where, what, [where, credentials, what](const std::string& token) {
    Credentials shown = credentials;
    shown.token = token;
    return std::make_unique<GrpcClient>(where, shown, what);
  });
}

std::unique_ptr<RpcClient> in_process_client(RpcHandler& handler) { return std::make_unique<InProcessClient>(handler); }

}  // namespace gradus
