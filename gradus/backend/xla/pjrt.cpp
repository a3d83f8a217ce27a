/// Calls of the C API.
#include "gradus/backend/xla/pjrt.h"
#include <dlfcn.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include "gradus/base/library_file.h"

namespace gradus::pjrt {
namespace {

constexpr std::size_t longest_message = 4096;

void require_file(const std::string& name, const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0)
    throw Unavailable(text("plugin ", name, ": ", path, ": ", std::generic_category().message(errno)));
  require<Unavailable>(S_ISREG(found.st_mode), "plugin ", name, ": ", path, " is not a file");
  const std::string problem = why_cut_off(path);
  require<Unavailable>(problem.empty(), "plugin ", name, ": ", problem);
}

/// The plugin's own statics may be gone: objects destroyed from now on are left to the system.
std::atomic<bool> is_exiting{false};

std::string problem_of_library() {
  const char* const problem = dlerror();
  return problem ? problem : "unknown reason";
}

/// The functions without which no program can be run, with their names in the C API.
template <class Visit> void for_each_needed(const Visit& visit) {
  visit("PJRT_Error_Destroy", &Api::error_destroy);
  visit("PJRT_Error_Message", &Api::error_message);
  visit("PJRT_Error_GetCode", &Api::error_get_code);
  visit("PJRT_Plugin_Initialize", &Api::plugin_initialize);
  visit("PJRT_Event_Destroy", &Api::event_destroy);
  visit("PJRT_Event_Await", &Api::event_await);
  visit("PJRT_Event_OnReady", &Api::event_on_ready);
  visit("PJRT_Client_Create", &Api::client_create);
  visit("PJRT_Client_PlatformName", &Api::client_platform_name);
  visit("PJRT_Client_PlatformVersion", &Api::client_platform_version);
  visit("PJRT_Client_AddressableDevices", &Api::client_addressable_devices);
  visit("PJRT_Client_Compile", &Api::client_compile);
  visit("PJRT_Client_BufferFromHostBuffer", &Api::buffer_from_host_buffer);
  visit("PJRT_DeviceDescription_Id", &Api::description_id);
  visit("PJRT_DeviceDescription_Kind", &Api::description_kind);
  visit("PJRT_Device_GetDescription", &Api::device_get_description);
  visit("PJRT_Executable_Destroy", &Api::executable_destroy);
  visit("PJRT_LoadedExecutable_Destroy", &Api::loaded_executable_destroy);
  visit("PJRT_LoadedExecutable_GetExecutable", &Api::loaded_executable_get_executable);
  visit("PJRT_LoadedExecutable_Execute", &Api::loaded_executable_execute);
  visit("PJRT_Buffer_Destroy", &Api::buffer_destroy);
  visit("PJRT_Buffer_IsDeleted", &Api::buffer_is_deleted);
  visit("PJRT_Buffer_ToHostBuffer", &Api::buffer_to_host_buffer);
  visit("PJRT_Buffer_ReadyEvent", &Api::buffer_ready_event);
}

}  // namespace

Plugin::Plugin(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {
  require_file(name_, path_);
  void* const library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  require<Unavailable>(library != nullptr, "plugin ", name_, ": cannot load ", path_, ": ", problem_of_library());
  using GetApi = const Api* (*)();
  const auto get = reinterpret_cast<GetApi>(dlsym(library, "GetPjrtApi"));
  require<Unavailable>(get != nullptr, "plugin ", name_, ": ", path_,
                       " is not a PJRT plugin: it has no function GetPjrtApi");
  api_ = get();
  require<Unavailable>(api_ != nullptr && api_->head.struct_size >= offsetof(Api, error_destroy), "plugin ", name_,
                       ": ", path_, ": GetPjrtApi gives no table of functions");
  const Version& version = api_->version;
  require<Unavailable>(version.major == api_major && version.minor >= oldest_minor, "plugin ", name_, ": ", path_,
                       " has version ", api_version(), " of the PJRT C API; this library speaks ", api_major, ".",
                       oldest_minor, " and later ", api_major, ".x");
  std::string missing;
  for_each_needed([&](const char* function, auto place) {
    if (!has(place)) missing += (missing.empty() ? "" : ", ") + std::string(function);
  });
  require<Unavailable>(missing.empty(), "plugin ", name_, ": ", path_, " has version ", api_version(),
                       " of the PJRT C API, and is incomplete: its table lacks ", missing,
                       ": take another build of the plugin");
  std::atexit([] { is_exiting = true; });  // runs before destructors of the library that was loaded
  auto a = arguments<PluginInitialize>();
  check(api_->plugin_initialize(&a), "initialize");
}

std::string Plugin::api_version() const { return text(api_->version.major, '.', api_->version.minor); }

std::exception_ptr Plugin::exception_of(Error* error, const char* what) const {
  if (!error) return nullptr;
  auto message = arguments<ErrorMessage>();
  message.error = error;
  api_->error_message(&message);
  auto code = arguments<ErrorGetCode>();
  code.error = error;
  if (Error* const another = api_->error_get_code(&code)) {
    auto destroy = arguments<ErrorDestroy>();
    destroy.error = another;
    api_->error_destroy(&destroy);
  }
  const std::size_t length = message.message ? std::min(message.message_size, longest_message) : 0;
  const Refused refused(static_cast<Code>(code.code),
                        text("plugin ", name_, ": ", what, ": ", std::string_view(message.message, length)));
  auto destroy = arguments<ErrorDestroy>();
  destroy.error = error;
  api_->error_destroy(&destroy);
  return std::make_exception_ptr(refused);
}

void Plugin::check(Error* error, const char* what) const {
  if (error) [[unlikely]]
    std::rethrow_exception(exception_of(error, what));
}

// ---------------------------------------------------------------- events

EventOwner& EventOwner::operator=(EventOwner&& other) noexcept {
  std::swap(plugin_, other.plugin_);
  std::swap(event_, other.event_);
  return *this;
}

EventOwner::~EventOwner() {
  if (!event_ || is_exiting) return;
  auto a = arguments<EventDestroy>();
  a.event = event_;
  plugin_->exception_of(plugin_->api().event_destroy(&a), "destroy an event");
}

void EventOwner::wait() const {
  if (!event_) return;
  auto a = arguments<EventAwait>();
  a.event = event_;
  plugin_->check(plugin_->api().event_await(&a), "wait");
}

void EventOwner::keep(std::shared_ptr<const void> kept) && {
  if (!event_) return;
  struct Waiting {
    const Plugin& plugin;
    EventOwner event;
    std::shared_ptr<const void> kept;
  };
  const Plugin& plugin = *plugin_;
  Event* const event = event_;
  auto waiting = std::make_unique<Waiting>(Waiting{plugin, std::move(*this), std::move(kept)});
  auto a = arguments<EventOnReady>();
  a.event = event;
  a.argument = waiting.get();
  a.callback = [](Error* error, void* argument) {
    const std::unique_ptr<Waiting> own(static_cast<Waiting*>(argument));
    own->plugin.exception_of(error, "wait");  // of a transfer: readers of its buffer get the error
  };
  if (Error* const error = plugin.api().event_on_ready(&a)) {
    plugin.exception_of(error, "wait");
    try {
      waiting->event.wait();
    } catch (const Refused&) {}  // it is over
    return;
  }
  waiting.release();  // the callback's
}

// ---------------------------------------------------------------- buffers

BufferOwner::~BufferOwner() {
  if (is_exiting) return;
  auto a = arguments<BufferDestroy>();
  a.buffer = buffer_;
  plugin_.exception_of(plugin_.api().buffer_destroy(&a), "destroy a buffer");
}

EventOwner BufferOwner::ready() const {
  auto a = arguments<BufferReadyEvent>();
  a.buffer = buffer_;
  plugin_.check(plugin_.api().buffer_ready_event(&a), "wait for a buffer");
  return {plugin_, a.event};
}

bool BufferOwner::is_deleted() const {
  auto a = arguments<BufferIsDeleted>();
  a.buffer = buffer_;
  return plugin_.exception_of(plugin_.api().buffer_is_deleted(&a), "ask a buffer") || a.is_deleted;
}

bool BufferOwner::has_failed() const try {
  ready().wait();
  return false;
} catch (const Refused&) { return true; }

EventOwner BufferOwner::read(const Spec& spec, void* destination, std::size_t bytes) const {
  std::array<std::int64_t, Shape::max_rank> row_major{};
  const int rank = spec.shape.rank();
  for (int i = 0; i < rank; ++i) row_major[static_cast<std::size_t>(i)] = rank - 1 - i;
  auto layout = arguments<MemoryLayout>();
  layout.kind = MemoryLayout::Kind::tiled;
  layout.tiled = arguments<TiledLayout>();
  layout.tiled.minor_to_major = row_major.data();
  layout.tiled.minor_to_major_size = static_cast<std::size_t>(rank);
  auto a = arguments<BufferToHostBuffer>();
  a.source = buffer_;
  a.host_layout = &layout;
  a.destination = destination;
  a.destination_size = bytes;
  plugin_.check(plugin_.api().buffer_to_host_buffer(&a), "copy to the host");
  return {plugin_, a.event};
}

std::shared_ptr<BufferOwner> BufferOwner::copy_to(Device* device) const {
  auto a = arguments<BufferCopyToDevice>();
  a.buffer = buffer_;
  a.device = device;
  plugin_.check(plugin_.api().buffer_copy_to_device(&a), "copy to another device");
  return std::make_shared<BufferOwner>(plugin_, a.copy);
}

// ---------------------------------------------------------------- code

Loaded::~Loaded() {
  if (is_exiting) return;
  auto a = arguments<LoadedExecutableDestroy>();
  a.executable = executable_;
  plugin_.exception_of(plugin_.api().loaded_executable_destroy(&a), "destroy code");
}

std::vector<std::shared_ptr<BufferOwner>> Loaded::run(std::span<Buffer* const> inputs,
                                                      std::span<const std::int64_t> kept, std::size_t results,
                                                      std::size_t devices) const {
  auto options = arguments<ExecuteOptions>();
  options.non_donatable_inputs = kept.data();
  options.num_non_donatable_inputs = kept.size();
  std::vector<Buffer*> made(results * devices, nullptr);
  std::vector<Buffer* const*> in;
  std::vector<Buffer**> out;
  const std::size_t each = inputs.size() / devices;
  for (std::size_t d = 0; d < devices; ++d) {
    in.push_back(inputs.data() + d * each);
    out.push_back(made.data() + d * results);
  }
  auto a = arguments<LoadedExecutableExecute>();
  a.executable = executable_;
  a.options = &options;
  a.argument_lists = in.data();
  a.num_devices = devices;
  a.num_arguments = each;
  a.output_lists = out.data();
  plugin_.check(plugin_.api().loaded_executable_execute(&a), "run a program");
  std::vector<std::shared_ptr<BufferOwner>> owned;
  owned.reserve(made.size());
  for (Buffer* const buffer : made) owned.push_back(std::make_shared<BufferOwner>(plugin_, buffer));
  return owned;
}

namespace {

/// The executable that a loaded one was loaded from.
class Source {
 public:
  Source(const Plugin& plugin, LoadedExecutable* loaded) : plugin_(plugin) {
    auto a = arguments<LoadedExecutableGetExecutable>();
    a.loaded = loaded;
    plugin.check(plugin.api().loaded_executable_get_executable(&a), "ask code");
    executable_ = a.executable;
  }
  Source(const Source&) = delete;
  ~Source() {
    auto a = arguments<ExecutableDestroy>();
    a.executable = executable_;
    plugin_.exception_of(plugin_.api().executable_destroy(&a), "destroy code");
  }
  Executable* get() const { return executable_; }

 private:
  const Plugin& plugin_;
  Executable* executable_ = nullptr;
};

}  // namespace

ExecutableMemoryStats Loaded::memory() const {
  auto a = arguments<ExecutableMemoryStats>();
  if (!plugin_.has(&Api::executable_memory_stats)) return a;
  try {
    const Source source(plugin_, executable_);
    a.executable = source.get();
    plugin_.check(plugin_.api().executable_memory_stats(&a), "ask code for its memory");
    return a;
  } catch (const Refused&) { return arguments<ExecutableMemoryStats>(); }  // it does not know
}
std::int64_t Loaded::temporary_bytes() const { return std::max(std::int64_t{0}, memory().temp_bytes); }
std::int64_t Loaded::code_bytes() const { return std::max(std::int64_t{0}, memory().generated_code_bytes); }

std::string Loaded::serialized() const try {
  plugin_.require_function(&Api::executable_serialize, "PJRT_Executable_Serialize");
  const Source source(plugin_, executable_);
  auto a = arguments<ExecutableSerialize>();
  a.executable = source.get();
  plugin_.check(plugin_.api().executable_serialize(&a), "serialize code");
  std::string bytes(a.bytes, a.bytes_size);
  if (a.destroy) a.destroy(a.serialized);
  return bytes;
} catch (const Refused&) { return {}; }

// ---------------------------------------------------------------- the client

Session::Session(const Plugin& plugin, std::span<const Option> options) : plugin_(plugin) {
  std::vector<NamedValue> values;
  for (const Option& option : options) {
    auto v = arguments<NamedValue>();
    v.name = option.name.data();
    v.name_size = option.name.size();
    v.value_size = 1;
    if (const auto* written = std::get_if<std::string>(&option.value)) {
      v.type = NamedValue::Type::text;
      v.text = written->data();
      v.value_size = written->size();
    } else if (const auto* number = std::get_if<std::int64_t>(&option.value)) {
      v.type = NamedValue::Type::int64;
      v.int64 = *number;
    } else if (const auto* fraction = std::get_if<float>(&option.value)) {
      v.type = NamedValue::Type::float32;
      v.float32 = *fraction;
    } else {
      v.type = NamedValue::Type::boolean;
      v.boolean = std::get<bool>(option.value);
    }
    values.push_back(v);
  }
  auto create = arguments<ClientCreate>();
  create.options = values.data();
  create.num_options = values.size();
  plugin.check(plugin.api().client_create(&create), "make a client");
  client_ = create.client;
  auto name = arguments<ClientPlatformName>();
  name.client = client_;
  plugin.check(plugin.api().client_platform_name(&name), "ask for the platform");
  platform_ = std::string(name.name, name.name_size);
  auto version = arguments<ClientPlatformVersion>();
  version.client = client_;
  plugin.check(plugin.api().client_platform_version(&version), "ask for the platform's version");
  platform_version_ = std::string(version.version, version.version_size);
  auto all = arguments<ClientAddressableDevices>();
  all.client = client_;
  plugin.check(plugin.api().client_addressable_devices(&all), "ask for the devices");
  devices_.assign(all.devices, all.devices + all.num_devices);
}

namespace {

DeviceDescription* description(const Plugin& plugin, Device* device) {
  auto a = arguments<DeviceGetDescription>();
  a.device = device;
  plugin.check(plugin.api().device_get_description(&a), "ask a device");
  return a.description;
}

}  // namespace

int Session::id_of(Device* device) const {
  auto a = arguments<DescriptionId>();
  a.description = description(plugin_, device);
  plugin_.check(plugin_.api().description_id(&a), "ask a device for its number");
  return a.id;
}

std::string Session::description_of(Device* device) const {
  auto a = arguments<DescriptionKind>();
  a.description = description(plugin_, device);
  plugin_.check(plugin_.api().description_kind(&a), "ask a device for its kind");
  return std::string(a.kind, a.kind_size);
}

MemoryNumbers Session::memory_of(Device* device) const {
  if (!plugin_.has(&Api::device_memory_stats)) return {};
  auto a = arguments<DeviceMemoryStats>();
  a.device = device;
  if (plugin_.exception_of(plugin_.api().device_memory_stats(&a), "ask a device for its memory")) return {};
  return {a.bytes_in_use, a.peak_bytes_in_use_is_set ? a.peak_bytes_in_use : 0,
          a.bytes_limit_is_set ? a.bytes_limit : 0};
}

std::shared_ptr<BufferOwner> Session::upload(Device* device, const Spec& spec, const void* data,
                                             EventOwner& done) const {
  constexpr std::int64_t nothing = 0;
  auto a = arguments<BufferFromHostBuffer>();
  a.client = client_;
  a.data = data ? data : &nothing;  // of no elements
  a.type = type_of(spec.dtype);
  a.dims = spec.shape.begin();
  a.num_dims = static_cast<std::size_t>(spec.shape.rank());
  a.semantics = HostBufferSemantics::until_transfer_completes;
  a.device = device;
  plugin_.check(plugin_.api().buffer_from_host_buffer(&a), "copy to the device");
  done = EventOwner(plugin_, a.done_with_host_buffer);
  return std::make_shared<BufferOwner>(plugin_, a.buffer);
}

std::unique_ptr<Loaded> Session::compile(const std::string& written, const std::string& options) const {
  constexpr std::string_view format = "mlir";
  auto program = arguments<Program>();
  program.code = const_cast<char*>(written.data());
  program.code_size = written.size();
  program.format = format.data();
  program.format_size = format.size();
  auto a = arguments<ClientCompile>();
  a.client = client_;
  a.program = &program;
  a.options = options.data();
  a.options_size = options.size();
  plugin_.check(plugin_.api().client_compile(&a), "compile a program");
  return std::make_unique<Loaded>(plugin_, a.executable);
}

std::unique_ptr<Loaded> Session::load(const std::string& serialized, const std::string& options) const {
  plugin_.require_function(&Api::executable_deserialize_and_load, "PJRT_Executable_DeserializeAndLoad");
  auto a = arguments<ExecutableDeserializeAndLoad>();
  a.client = client_;
  a.bytes = serialized.data();
  a.bytes_size = serialized.size();
  a.options = options.data();
  a.options_size = options.size();
  plugin_.check(plugin_.api().executable_deserialize_and_load(&a), "load code");
  return std::make_unique<Loaded>(plugin_, a.executable);
}

// ---------------------------------------------------------------- options of compilations

namespace {

/// Messages of Protocol Buffers, field by field.
class Message {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    out_ += value;
  }
  const std::string& written() const { return out_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>((value & 0x7f) | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

}  // namespace

std::string compile_options(std::span<const int> device_ids, std::span<const Option> flags) {
  Message computation;  // DeviceAssignmentProto.ComputationDevice
  for (const int id : device_ids) computation.number(1, static_cast<std::uint64_t>(id));  // replica_device_ids
  Message assignment;
  assignment.number(1, device_ids.size());  // replica_count
  assignment.number(2, 1);                  // computation_count
  assignment.bytes(3, computation.written());
  Message build;                       // ExecutableBuildOptionsProto
  build.number(4, device_ids.size());  // num_replicas
  build.number(5, 1);                  // num_partitions
  build.bytes(9, assignment.written());
  Message options;  // CompileOptionsProto
  options.bytes(3, build.written());
  for (const Option& flag : flags) {
    Message value;  // OptionOverrideProto
    if (const auto* written = std::get_if<std::string>(&flag.value)) value.bytes(1, *written);
    else if (const auto* is_set = std::get_if<bool>(&flag.value)) value.number(2, *is_set);
    else if (const auto* number = std::get_if<std::int64_t>(&flag.value))
      value.number(3, static_cast<std::uint64_t>(*number));
    Message entry;
    entry.bytes(1, flag.name);
    entry.bytes(2, value.written());
    options.bytes(7, entry.written());  // env_option_overrides
  }
  return options.written();
}

Type type_of(DType dtype) {
  constexpr Type types[] = {Type::f64, Type::f32, Type::f16, Type::bf16, Type::s64, Type::s32, Type::s16,
                            Type::s8,  Type::u8,  Type::u16, Type::u32,  Type::u64, Type::pred};
  return types[static_cast<int>(dtype)];
}

}  // namespace gradus::pjrt
