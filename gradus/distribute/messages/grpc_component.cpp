/// libgradus_grpc.so: the one source that sees gRPC's headers. It sends bytes, so it has no generated code, and does
/// not link protobuf: the library has its own copy.
#include "gradus/distribute/messages/grpc_component.h"
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include "gradus/base/lived_time.h"

namespace gradus {
namespace {

constexpr const char *method = "/gradus.Meeting/Ask", *token_key = "gradus-token";

std::string text_of(const char* given) { return given != nullptr ? given : ""; }

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) return out;
  for (const grpc::Slice& slice : slices) out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return out;
}

grpc::ByteBuffer buffer_of(const char* bytes, std::size_t size) {
  const grpc::Slice slice(bytes, size);
  return grpc::ByteBuffer(&slice, 1);
}

/// Takes as long whatever differs.
bool is_same(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned{static_cast<unsigned char>(a[i])} ^ static_cast<unsigned char>(i < b.size() ? b[i] : 0);
  return difference == 0;
}

void say(const std::string& problem, char* why, std::size_t size) {
  if (size == 0) return;
  const std::size_t length = std::min(size - 1, problem.size());
  std::memcpy(why, problem.data(), length);
  why[length] = 0;
}

class Server;

/// Guards calls into a server's owner, which may end before the server.
class Gate {
 public:
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) ++inside_;
    return !is_closed_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }
  /// Admits no further calls; calls inside have a second to finish.
  void close() {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    changed_.wait_for(lock, std::chrono::seconds(1), [&] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_closed_ = false;
};

/// One question. The thread that takes `finishing_` ends it.
class Question : public grpc::ServerGenericBidiReactor {
 public:
  Question(Server& server, grpc::GenericCallbackServerContext& context);
  void OnReadDone(bool is_read) override;
  void OnCancel() override;
  void OnDone() override { delete this; }
  void answer(const char* bytes, std::size_t size) {
    if (finishing_.exchange(true)) return;
    reply_ = buffer_of(bytes, size);
    StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
  }

 private:
  void end(grpc::StatusCode code, const char* why) {
    if (!finishing_.exchange(true)) Finish({code, why});
  }
  Server& server_;
  const std::string peer_;
  grpc::ByteBuffer request_, reply_;
  std::atomic<bool> finishing_ = false;
  friend class Server;
  std::uint64_t number_ = 0;   // guarded by the server, from 1 on once it is asked
  bool is_cancelled_ = false;  // the same
};

class Server : public grpc::CallbackGenericService {
 public:
  explicit Server(const GrpcServerSettings& settings)
      : settings_(settings), token_(text_of(settings.credentials.token)) {
    settings_.credentials = {};  // texts that do not stay
  }

  ~Server() override { servers_with_tls().remove(*this); }

  std::string start(const GrpcServerSettings& given) {
    grpc::ServerBuilder builder;
    auto credentials = grpc::InsecureServerCredentials();
    if (given.credentials.certificate != nullptr) {
      grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      options.pem_root_certs = text_of(given.credentials.authority);
      options.pem_key_cert_pairs.push_back({text_of(given.credentials.key), text_of(given.credentials.certificate)});
      credentials = grpc::SslServerCredentials(options);
      servers_with_tls().add(*this);
    }
    using From = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    connections_ = builder.experimental().AddExternalConnectionAcceptor(From::FROM_FD, credentials);
    builder.SetMaxReceiveMessageSize(given.most_bytes);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    return server_ != nullptr ? "" : "gRPC does not start, or a certificate is wrong";
  }

  void take(int descriptor) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    connections_->HandleNewConnection(&connection);
  }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Question(*this, *context);
  }

  bool has_token(const grpc::GenericCallbackServerContext& context) const {
    const auto found = context.client_metadata().find(token_key);
    const std::string given = found == context.client_metadata().end()
                                  ? std::string()
                                  : std::string(found->second.data(), found->second.size());
    return is_same(given, token_);
  }

  /// Its number, or 0 if the caller has gone already.
  std::uint64_t add(Question& question) {
    const std::lock_guard lock(mutex_);
    if (question.is_cancelled_) return 0;
    open_[++last_] = &question;
    return question.number_ = last_;
  }
  /// Its number if it was open.
  std::uint64_t cancel(Question& question) {
    const std::lock_guard lock(mutex_);
    question.is_cancelled_ = true;
    return open_.erase(question.number_) > 0 ? question.number_ : 0;
  }
  /// Null if it is answered, or the caller has gone.
  Question* take(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(number);
    if (found == open_.end()) return nullptr;
    Question* const question = found->second;
    open_.erase(found);
    return question;
  }

  void stop(int milliseconds) {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds));
    server_->Wait();  // no deadline: end_server abandons the thread if this does not return
  }
  /// Calls a function of the owner while the gate is open.
  template <class Told> void tell(Told told) {
    const std::shared_ptr<Gate> gate = gate_;  // the owner may end the server during the call
    if (!gate->enter()) return;
    told(settings_);
    gate->leave();
  }
  const std::shared_ptr<Gate>& gate() const { return gate_; }

  /// Servers whose handshakes may fail. gRPC reports that in its log alone, without naming the server.
  class WithTls {
   public:
    void add(Server& server) {
      const std::lock_guard lock(mutex_);
      all_.insert(&server);
    }
    void remove(Server& server) {
      const std::lock_guard lock(mutex_);
      all_.erase(&server);
    }
    void tell(const std::string& why) {
      const std::lock_guard lock(mutex_);
      for (Server* const each : all_)
        each->tell([&](const GrpcServerSettings& to) { to.handshake_failed(to.owner, why.c_str()); });
    }

   private:
    std::mutex mutex_;
    std::set<Server*> all_;
  };
  static WithTls& servers_with_tls() {
    static auto* const all = new WithTls;  // threads of gRPC may write their log as the process ends
    return *all;
  }

 private:
  GrpcServerSettings settings_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  const std::string token_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::map<std::uint64_t, Question*> open_;
  std::uint64_t last_ = 0;
};

Question::Question(Server& server, grpc::GenericCallbackServerContext& context)
    : server_(server), peer_(context.peer()) {
  if (context.method() != method) {
    end(grpc::StatusCode::UNIMPLEMENTED, "there is no such question");
  } else if (!server.has_token(context)) {
    server.tell([&](const GrpcServerSettings& to) { to.refused(to.owner, peer_.c_str()); });
    end(grpc::StatusCode::UNAUTHENTICATED, "the token is another");
  } else {
    server.tell([&](const GrpcServerSettings& to) { to.proven(to.owner, peer_.c_str()); });
    StartRead(&request_);
  }
}

void Question::OnReadDone(bool is_read) {
  if (!is_read) return end(grpc::StatusCode::INVALID_ARGUMENT, "there is no question");
  const std::string bytes = bytes_of(request_);
  const std::string peer = peer_;  // the answer may come, and end this, before `asked` returns
  if (const std::uint64_t number = server_.add(*this))
    server_.tell(
        [&](const GrpcServerSettings& to) { to.asked(to.owner, number, bytes.data(), bytes.size(), peer.c_str()); });
}

void Question::OnCancel() {
  if (const std::uint64_t number = server_.cancel(*this))
    server_.tell([&](const GrpcServerSettings& to) { to.left(to.owner, number); });
  end(grpc::StatusCode::CANCELLED, "who asked has gone");
}

class Client {
 public:
  explicit Client(const GrpcClientSettings& settings) : token_(text_of(settings.credentials.token)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(settings.most_bytes);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto credentials = grpc::InsecureChannelCredentials();
    if (settings.credentials.certificate != nullptr)
      credentials = grpc::SslCredentials({text_of(settings.credentials.authority), text_of(settings.credentials.key),
                                          text_of(settings.credentials.certificate)});
    channel_ = grpc::CreateCustomChannel(settings.address, credentials, arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }

  grpc::Status ask(const char* bytes, std::size_t size, int milliseconds, bool awaits, std::string& answer) {
    Call call(*this, method, buffer_of(bytes, size), awaits);
    grpc::Status status = call.end(milliseconds);
    if (status.ok()) answer = bytes_of(call.reply());
    return status;
  }

  /// Why there is no connection, empty if gRPC does not know yet; nothing while one exists. gRPC reports it only to
  /// calls that do not wait for the server.
  std::optional<std::string> problem_of_connection() {
    if (channel_->GetState(false) == GRPC_CHANNEL_READY) return {};
    Call call(*this, "/gradus.Meeting/None", buffer_of("", 0), false);
    const grpc::Status status = call.end(100);
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE: return status.error_message();
      case grpc::StatusCode::DEADLINE_EXCEEDED:
      case grpc::StatusCode::CANCELLED: return "";
      default: return {};
    }
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (Call* const call : under_way_) call->cancel();
  }

 private:
  class Call {
   public:
    Call(Client& client, const char* called, grpc::ByteBuffer request, bool awaits) : client_(client) {
      parts_->context.set_wait_for_ready(awaits);
      if (!client.token_.empty()) parts_->context.AddMetadata(token_key, client.token_);
      parts_->request = std::move(request);
      {
        const std::lock_guard lock(client.mutex_);
        client.under_way_.insert(this);
        if (client.is_cancelled_) {
          ending_->done({grpc::StatusCode::CANCELLED, "it was given up"});
          return;
        }
      }
      client.stub_->UnaryCall(&parts_->context, called, {}, &parts_->request, &parts_->reply,
                              [ending = ending_](grpc::Status status) { ending->done(std::move(status)); });
    }
    /// Objects that gRPC still uses are leaked, as gRPC never finishes them. Otherwise they end here, not on a thread
    /// of gRPC's, which may not end a channel.
    ~Call() {
      const std::lock_guard lock(client_.mutex_);
      client_.under_way_.erase(this);
      if (!ending_->is_done()) static_cast<void>(parts_.release());
    }
    Call(const Call&) = delete;

    const grpc::ByteBuffer& reply() const { return parts_->reply; }

    /// Waits, and cancels a late call. gRPC may lack the threads that would report the end of a call, even of one with
    /// its own deadline; then the call is abandoned.
    grpc::Status end(int milliseconds) {
      LivedDeadline deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds));
      while (!ending_->wait_until(deadline.next(), true) && !deadline.has_passed()) {}
      const auto heard = ending_->status();
      if (heard && !is_cancelled_) return *heard;
      parts_->context.TryCancel();
      const bool has_ended = ending_->wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(1), false);
      if (is_cancelled_) return {grpc::StatusCode::CANCELLED, "it was given up"};
      if (has_ended && ending_->status()->ok()) return *ending_->status();
      return {grpc::StatusCode::DEADLINE_EXCEEDED,
              has_ended ? "" : "gRPC does not go on: it may lack threads, memory or descriptors (ulimit -u, -v, -n)"};
    }

    void cancel() {
      is_cancelled_ = true;
      parts_->context.TryCancel();
      ending_->wake();
    }

   private:
    /// Objects that gRPC uses until the call's end.
    struct Parts {
      grpc::ClientContext context;
      grpc::ByteBuffer request, reply;
    };
    /// The end of the call, shared with gRPC's callback, which may come late.
    class Ending {
     public:
      void done(grpc::Status status) {
        const std::lock_guard lock(mutex_);
        status_ = std::move(status);
        changed_.notify_all();
      }
      void wake() {
        const std::lock_guard lock(mutex_);
        is_awake_ = true;
        changed_.notify_all();
      }
      /// True if the call has ended; `or_woken`: also if the waiting thread was woken.
      bool wait_until(std::chrono::steady_clock::time_point deadline, bool or_woken) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, deadline, [&] { return status_ || (or_woken && is_awake_); });
      }
      std::optional<grpc::Status> status() {
        const std::lock_guard lock(mutex_);
        return status_;
      }
      bool is_done() { return status().has_value(); }

     private:
      std::mutex mutex_;
      std::condition_variable changed_;
      std::optional<grpc::Status> status_;
      bool is_awake_ = false;
    };

    Client& client_;
    std::unique_ptr<Parts> parts_ = std::make_unique<Parts>();
    const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
    std::atomic<bool> is_cancelled_ = false;
  };

  const std::string token_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::mutex mutex_;
  std::set<Call*> under_way_;
  bool is_cancelled_ = false;
};

/// Ends a server, on a thread of its own: if gRPC lacks threads, the end may never come. Then the server is abandoned,
/// and no longer calls its owner.
void end_server(Server* server, int milliseconds) {
  struct Ending {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_done = false;
  };
  const auto ending = std::make_shared<Ending>();
  const std::shared_ptr<Gate> gate = server->gate();
  try {
    std::thread([server, milliseconds, ending] {
      server->stop(milliseconds);
      delete server;
      const std::lock_guard lock(ending->mutex);
      ending->is_done = true;
      ending->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) { return gate->close(); }  // no thread can be started
  std::unique_lock lock(ending->mutex);
  const auto patience = std::chrono::milliseconds(milliseconds) + std::chrono::seconds(5);
  if (!ending->changed.wait_for(lock, patience, [&] { return ending->is_done; })) gate->close();
}

GrpcResult result_of(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return GrpcResult::answered;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return GrpcResult::late;
    case grpc::StatusCode::UNAVAILABLE: return GrpcResult::unreachable;
    case grpc::StatusCode::UNAUTHENTICATED: return GrpcResult::refused;
    default: return GrpcResult::failed;
  }
}

constexpr GrpcTable table = {
    .version = GrpcTable::current,
    .serve = [](const GrpcServerSettings* settings, char* why, std::size_t size) -> void* {
      auto server = std::make_unique<Server>(*settings);
      const std::string problem = server->start(*settings);
      if (problem.empty()) return server.release();
      say(problem, why, size);
      return nullptr;
    },
    .take = [](void* server, int descriptor) { static_cast<Server*>(server)->take(descriptor); },
    .answer =
        [](void* server, std::uint64_t call, const char* bytes, std::size_t size) {
          if (Question* const question = static_cast<Server*>(server)->take(call)) question->answer(bytes, size);
        },
    .stop = [](void* server, int milliseconds) { end_server(static_cast<Server*>(server), milliseconds); },
    .connect = [](const GrpcClientSettings* settings) -> void* { return new Client(*settings); },
    .ask =
        [](void* client, const char* bytes, std::size_t size, int milliseconds, int awaits, void* owner,
           void (*answered)(void*, const char*, std::size_t), char* why, std::size_t why_size) {
          std::string answer;
          const grpc::Status status = static_cast<Client*>(client)->ask(bytes, size, milliseconds, awaits != 0, answer);
          const bool is_late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
          if (status.ok()) answered(owner, answer.data(), answer.size());
          else if (!is_late) say(status.error_message(), why, why_size);
          else if (!status.error_message().empty()) {
            say(status.error_message(), why, why_size);
            return GrpcResult::unconnected;
          } else if (awaits != 0) {
            const auto problem = static_cast<Client*>(client)->problem_of_connection();
            if (problem) {
              say(*problem, why, why_size);
              return GrpcResult::unconnected;
            }
          }
          return result_of(status);
        },
    .cancel = [](void* client) { static_cast<Client*>(client)->cancel(); },
    .disconnect = [](void* client) { delete static_cast<Client*>(client); },
};

/// Reads the one line of gRPC's log which says that a server's handshake failed: no call reports it.
void read_log(gpr_log_func_args* line) {
  constexpr std::string_view source = "chttp2_server.cc", begin = "Handshaking failed: ";
  std::string_view message = line->message;
  if (!std::string_view(line->file).ends_with(source) || !message.starts_with(begin)) return;
  message.remove_prefix(begin.size());
  if (message.starts_with("UNKNOWN:")) message.remove_prefix(8);
  Server::servers_with_tls().tell(std::string(message.substr(0, message.find(" {"))));
}

}  // namespace
}  // namespace gradus

/// The caller reports failures; gRPC's own log is for users that set GRPC_VERBOSITY.
extern "C" __attribute__((visibility("default"))) const gradus::GrpcTable* gradus_grpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
    gpr_set_log_function(gradus::read_log);
  }
  // Initializes gRPC once and never shuts it down: if gRPC lacks a thread, its shutdown waits without a deadline.
  static const bool is_begun = (grpc_init(), true);
  static_cast<void>(is_begun);
  return &gradus::table;
}
