/// The library without its templates: the interfaces that a binding of another language stands on, where functions,
/// models, steps and data sets have types that C++ does not know. They are promised within a version as the ops and
/// layers of gradus.h are; the rooms behind them may move their parts, and these names stay.
///
///   erased/memory.h     values in memory that another language owns, and handles to what it shares with the library
///   erased/function.h   a function is a Body: tensors in, tensors out; the rest of its arguments is spelt
///   erased/gradients.h  gradients that were made by hand, as an optimizer takes them
///   erased/model.h      a model is a NetLayer whose fields a visitor receives
///   erased/training.h   a training is a Task: a function of the fields of a batch
///   erased/data.h       a data set is a Pipeline of vectors of tensors
///   erased/strategy.h   a step on several devices is a StepIdentity and a Body
///
/// All of them are in gradus::erased. A function that is given to the library may be called, copied and destroyed on
/// any thread, and an exception that leaves it comes out of the call that ran it, of whatever type it is.
#pragma once
#include "gradus/erased/data.h"
#include "gradus/erased/function.h"
#include "gradus/erased/gradients.h"
#include "gradus/erased/memory.h"
#include "gradus/erased/model.h"
#include "gradus/erased/strategy.h"
#include "gradus/erased/training.h"
