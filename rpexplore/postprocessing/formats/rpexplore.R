# Reads tables that rpexplore has released, or exported, into data frames with standard errors.
# Base R only.
#
#   source("rpexplore.R")
#   release <- read_release("the folder of the release, or of the export")
#   release                                        # what is promised, and which tables there are
#   table <- release_table(release, "age", "sex")  # value, standard_error, lower_95, upper_95
#   release[["age x sex"]]                         # the same
#
# The errors of different cells go together, so a sum of cells has another standard error than theirs
# suggest; where there is a smaller table, use its cell.

# All tables of a folder, or those of `tables`, a list of vectors of names of attributes.
read_release <- function(folder, tables = NULL) {
  released <- file.path(folder, "manifest.json")
  exported <- file.path(folder, "datapackage.json")
  if (file.exists(released)) {
    found <- .rpexplore_manifest(folder, .rpexplore_json(released))
  } else if (file.exists(exported)) {
    found <- .rpexplore_package(.rpexplore_json(exported))
  } else {
    stop("'", folder, "' has no manifest.json and no datapackage.json; name the folder of a ",
         "finished release, or of an export with --format frictionless.", call. = FALSE)
  }
  files <- found$files
  if (!is.null(tables)) {
    keys <- vapply(files, function(file) .rpexplore_key(file$attributes), "")
    wanted <- match(vapply(tables, .rpexplore_key, ""), keys)
    if (anyNA(wanted)) {
      stop("there is no table of (", paste(tables[[which(is.na(wanted))[1]]], collapse = " x "),
           ") here; choose one of those that were released.", call. = FALSE)
    }
    files <- files[wanted]
  }
  frames <- lapply(files, function(file) .rpexplore_table(folder, file))
  names(frames) <- vapply(files, function(file) file$name, "")
  structure(frames, class = "rpexplore_release", facts = found$facts,
            attributes = lapply(files, function(file) file$attributes))
}

# The table of these attributes, in whichever order.
release_table <- function(release, ...) {
  keys <- vapply(attr(release, "attributes"), .rpexplore_key, "")
  position <- match(.rpexplore_key(c(...)), keys)
  if (is.na(position)) {
    stop("there is no table of (", paste(c(...), collapse = " x "), ") here; choose one of ",
         paste(utils::head(names(release), 6), collapse = ", "), " ...", call. = FALSE)
  }
  release[[position]]
}

print.rpexplore_release <- function(x, ...) {
  cat(strwrap(attr(x, "facts")$guarantee), sep = "\n")
  cat("\n", length(x), " tables: ", paste(utils::head(names(x), 10), collapse = ", "),
      if (length(x) > 10) ", ...", "\n", sep = "")
  invisible(x)
}

# ---- which files there are

.rpexplore_key <- function(attributes) paste(sort(as.character(attributes)), collapse = "\r")

.rpexplore_name <- function(attributes) {
  if (length(attributes)) paste(attributes, collapse = " x ") else "total"
}

.rpexplore_manifest <- function(folder, manifest) {
  if (startsWith(manifest$format, "rpexplore-area-")) {
    stop("'", folder, "' holds tables in areas, which are folders of Parquet files; read one with ",
         "arrow::open_dataset(\"tables/LEVEL/TABLE\").", call. = FALSE)
  }
  is_table <- function(entry) !is.null(entry$attributes) || grepl("^answers\\.", entry$path)
  entries <- Filter(is_table, manifest$files)
  paths <- vapply(entries, function(entry) entry$path, "")
  csv <- endsWith(paths, ".csv")
  if (any(csv)) {
    entries <- entries[csv]
  } else if (requireNamespace("arrow", quietly = TRUE)) {
    entries <- entries[endsWith(paths, ".parquet")]
  } else {
    stop("'", folder, "' has Parquet files only, for which R needs the package arrow; install it, ",
         "or export the tables with `rpexplore publish`.", call. = FALSE)
  }
  files <- lapply(entries, function(entry) {
    attributes <- as.character(unlist(entry$attributes))
    name <- if (grepl("^answers\\.", entry$path)) "answers" else .rpexplore_name(attributes)
    list(path = entry$path, bytes = entry$bytes, attributes = attributes, name = name)
  })
  facts <- manifest[intersect(c("guarantee", "privacy_unit", "rho", "label"), names(manifest))]
  list(files = files, facts = facts)
}

.rpexplore_package <- function(package) {
  files <- lapply(package$resources, function(resource) {
    attributes <- as.character(unlist(resource$dimensions))
    list(path = resource$path, bytes = resource$bytes, attributes = attributes,
         name = .rpexplore_name(attributes))
  })
  list(files = files, facts = package$privacy)
}

.rpexplore_table <- function(folder, file) {
  path <- file.path(folder, file$path)
  if (!isTRUE(file.size(path) == file$bytes)) {
    stop("the file '", path, "' is missing or was changed since; use the original folder.",
         call. = FALSE)
  }
  if (endsWith(path, ".parquet")) {
    frame <- as.data.frame(arrow::read_parquet(path))
    return(as.data.frame(lapply(frame, function(column) {
      if (is.factor(column)) as.character(column) else column
    }), check.names = FALSE))
  }
  # The head is read as a row, so that names stay as they are.
  head <- unlist(utils::read.csv(path, header = FALSE, nrows = 1, colClasses = "character",
                                 encoding = "UTF-8", na.strings = character(0)))
  kinds <- rep("character", length(head))
  # By position: an attribute may bear any name.
  if (file$name == "answers") {
    numbers <- which(head %in% c("answer", "standard_error", "margin_95", "target"))
  } else if (head[length(head)] == "value_is") {
    last <- length(head) - 1
    first <- if (head[last - 2] == "model_error") {
      last - 3  # of an adaptive release
    } else {
      last - 4 - (head[last - 4] == "model_error")
    }
    numbers <- seq(first, last)
  } else {
    numbers <- seq(length(head) - 3, length(head))
  }
  kinds[numbers] <- "numeric"
  utils::read.csv(path, check.names = FALSE, colClasses = unname(kinds), encoding = "UTF-8",
                  na.strings = "")
}

# ---- JSON

.rpexplore_json <- function(path) {
  text <- readChar(path, file.size(path), useBytes = TRUE)
  token <- paste0("\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|",
                  "-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|[\\[\\]{},:]")
  tokens <- regmatches(text, gregexpr(token, text, perl = TRUE, useBytes = TRUE))[[1]]
  position <- 0
  following <- function() {
    position <<- position + 1
    tokens[position]
  }
  value <- function() {
    token <- following()
    if (token == "{") {
      fields <- list()
      while (tokens[position + 1] != "}") {
        name <- .rpexplore_text(following())
        following()  # the colon
        fields[name] <- list(value())
        if (tokens[position + 1] == ",") following()
      }
      following()
      fields
    } else if (token == "[") {
      items <- list()
      while (tokens[position + 1] != "]") {
        items[length(items) + 1] <- list(value())
        if (tokens[position + 1] == ",") following()
      }
      following()
      items
    } else if (startsWith(token, "\"")) {
      .rpexplore_text(token)
    } else {
      switch(token, true = TRUE, false = FALSE, null = NULL, as.numeric(token))
    }
  }
  value()
}

.rpexplore_text <- function(token) {
  text <- substr(token, 2, nchar(token, "bytes") - 1)
  Encoding(text) <- "UTF-8"
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  escapes <- regmatches(text, gregexpr("\\\\(u[0-9a-fA-F]{4}|.)", text))[[1]]
  plain <- vapply(escapes, function(escape) {
    sign <- substr(escape, 2, 2)
    if (sign == "u") return(intToUtf8(strtoi(substr(escape, 3, 6), 16L)))
    switch(sign, n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", sign)
  }, "")
  regmatches(text, gregexpr("\\\\(u[0-9a-fA-F]{4}|.)", text)) <- list(unname(plain))
  text
}
