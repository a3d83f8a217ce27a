"""Recurrent loops: one scan over time, whatever its length; LSTM and GRU as the engine's fused ops."""
import functools

from gradus import ops
from keras.src import tree
from keras.src.backend.common import global_state

from keras_gradus.src.loops import scan
from keras_gradus.src.ops.core import convert_to_tensor


def _swapped(x):
    """Batch and time in each other's place."""
    return ops.transpose(x, [1, 0, *range(2, x.ndim)])


def _like(mask, x):
    """The mask [batch, 1] with as many dimensions as x."""
    return ops.reshape(mask, [mask.shape[0]] + [1] * (x.ndim - 1))


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False, input_length=None,
        time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    """Calls step_function(input, states) for each time; gives the last output, all outputs and the last states.

    Where the mask is False, the states stay, and the output is that of the time before, or 0 with zero_output_for_mask.
    Before the first time it is the first state, as on JAX, or 0 where that has another shape. With go_backwards outputs
    are in the order in which they were computed.
    """
    in_time = (lambda x: convert_to_tensor(x)) if time_major else (lambda x: _swapped(convert_to_tensor(x)))
    rows = tree.map_structure(in_time, inputs)
    constants = tuple(constants or ())
    xs = (rows,) if mask is None else (rows, _mask_of(mask, in_time))
    if go_backwards:
        xs = tree.map_structure(lambda x: ops.reverse(x, [0]), xs)
    states = tree.map_structure(convert_to_tensor, tuple(initial_states))

    def step(states, row):
        output, following = step_function(row[0], tuple(states) + constants)
        return tuple(following), output

    def masked_step(carry, row):
        states, before = carry
        output, following = step_function(row[0], tuple(states) + constants)
        kept = functools.partial(_kept, row[1])
        following = tree.map_structure(lambda new, old: kept(new, old), tuple(following), tuple(states))
        if zero_output_for_mask:
            return (following, before), kept(output, ops.zeros_like(output))
        output = kept(output, before)
        return (following, output), output
    if mask is None:
        last, outputs = scan(step, states, xs)
    else:
        first = tree.map_structure(lambda x: x[0], rows)
        like = step_function(first, states + constants)[0]
        (last, _), outputs = scan(masked_step, (states, _before(states, like)), xs)
    last_output = tree.map_structure(lambda x: x[-1], outputs)
    if not return_all_outputs:
        outputs = tree.map_structure(lambda x: ops.expand_dims(x, 0), last_output)
    return last_output, outputs if time_major else tree.map_structure(_swapped, outputs), last


def _before(states, like):
    """The output before the first time: the first state, of stacked cells that of the last one."""
    first = tree.flatten(states[-1] if states and tree.is_nested(states[0]) else states)[:1]
    is_alike = first and not tree.is_nested(like) and first[0].shape == like.shape
    return ops.cast(first[0], like.dtype) if is_alike else tree.map_structure(ops.zeros_like, like)


def _mask_of(mask, in_time):
    mask = convert_to_tensor(mask, dtype="bool")
    return in_time(mask if mask.ndim == 2 else ops.reshape(mask, mask.shape[:2]))


def _kept(mask, new, old):
    """new where the mask [batch] holds, else old."""
    return ops.where(_like(mask, new), new, old)


# ---- fused

def cudnn_ok(*args, **kwargs):
    """True: the fused ops take every activation, with and without bias."""
    return True


def _by_default(activation, recurrent_activation):
    """The options of the fused ops for two activations; theirs are tanh and sigmoid."""
    found = {}
    for name, f, default in (("activation", activation, "tanh"), ("recurrent_activation", recurrent_activation, "sigmoid")):
        if getattr(f, "__name__", None) != default:
            found[name] = lambda x, f=f: convert_to_tensor(f(x))
    return found


def _zeroes_masked_outputs():
    """zero_output_for_mask of the layer that is called, which Keras hands to rnn() alone. NotImplementedError outside of
    such a layer: then Keras calls rnn()."""
    stack = global_state.get_global_attribute("name_scope_stack") or [None]
    found = getattr(getattr(stack[-1], "caller", None), "zero_output_for_mask", None)
    if found is None:
        raise NotImplementedError
    return found


def _fused(op, inputs, mask, return_sequences, go_backwards, time_major, options):
    """(last output, outputs, result) of a fused op, whose outputs are [time, batch, units] in the order of time."""
    zeroes = mask is not None and _zeroes_masked_outputs()
    options = {name: value for name, value in options.items() if value is not None}
    x = convert_to_tensor(inputs)
    x = x if x.dtype.is_floating else ops.cast(x, options["kernel"].dtype)
    x = x if time_major else _swapped(x)
    if mask is not None:
        mask = options["mask"] = _mask_of(mask, (lambda m: m) if time_major else _swapped)
    result = op(x, reverse=go_backwards, **options)
    outputs = result.sequence
    if mask is not None:
        outputs = _masked(outputs, mask, go_backwards, zeroes, options.get("initial_state"))
    outputs = ops.reverse(outputs, [0]) if go_backwards else outputs
    last_output = outputs[-1]
    outputs = outputs if return_sequences else ops.expand_dims(last_output, 0)
    return last_output, outputs if time_major else _swapped(outputs), result


def _masked(outputs, mask, go_backwards, zeroes, first):
    """The outputs at masked times: 0, or that of the time before, which is `first` before all others. The op has 0 there."""
    if zeroes:
        return ops.where(ops.expand_dims(mask, -1), outputs, ops.zeros_like(outputs))
    if first is None:
        return outputs
    seen = ops.cumsum(ops.cast(mask, "int32"), axis=0, reverse=go_backwards)
    return ops.where(ops.expand_dims(seen > 0, -1), outputs, ops.broadcast_to(first, outputs.shape))


def _given(**tensors):
    return {name: None if x is None else convert_to_tensor(x) for name, x in tensors.items()}


def lstm(inputs, initial_state_h, initial_state_c, mask, kernel, recurrent_kernel, bias, activation, recurrent_activation,
         return_sequences=False, go_backwards=False, unroll=False, time_major=False):
    options = _given(kernel=kernel, recurrent_kernel=recurrent_kernel, bias=bias, initial_state=initial_state_h,
                     initial_cell=initial_state_c) | _by_default(activation, recurrent_activation)
    if "activation" in options:
        options["cell_activation"] = options["activation"]
    last, outputs, result = _fused(ops.lstm, inputs, mask, return_sequences, go_backwards, time_major, options)
    return last, outputs, [result.state, result.cell]


def gru(inputs, initial_state, mask, kernel, recurrent_kernel, bias, activation, recurrent_activation, return_sequences=False,
        go_backwards=False, unroll=False, time_major=False, reset_after=True):
    options = _given(kernel=kernel, recurrent_kernel=recurrent_kernel, initial_state=initial_state)
    if bias is not None and reset_after:
        options["bias"], options["recurrent_bias"] = ops.unstack(convert_to_tensor(bias), 0)
    elif bias is not None:
        options["bias"] = convert_to_tensor(bias)
    options |= _by_default(activation, recurrent_activation) | {"reset_after": reset_after}
    last, outputs, result = _fused(ops.gru, inputs, mask, return_sequences, go_backwards, time_major, options)
    return last, outputs, [result.state]


def bidirectional_lstm(*args, **kwargs):
    """Keras then calls lstm() for each direction."""
    raise NotImplementedError


bidirectional_gru = bidirectional_lstm
